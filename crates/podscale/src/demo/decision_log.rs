//! Prints what is decided, and why, in lines that people read while they watch.

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use podscale_client::clock::Clock;
use podscale_controller::controller::observer::{Decided, JobsDecided, Observer, why};
use podscale_controller::dashboard::{DecisionView, OutcomeKind, Picture};
use podscale_controller::dialect::Key;
use podscale_core::Step;
use std::collections::HashMap;
use std::io::Write;

/// For so long after the start, metrics that are not there yet are nothing to worry about; cluster
/// time.
const WARM_UP: SignedDuration = SignedDuration::from_secs(180);

/// Prints a line for every change of size, for Jobs that are created, and whenever something new stands in its way.
pub struct DecisionLog<W> {
    clock: Clock,
    started: Timestamp,
    state: Mutex<State<W>>,
}

struct State<W> {
    out: W,
    last: HashMap<Key, Seen>,
    /// What happened before the banner was printed; it is printed right after that.
    pending: Option<String>,
}

/// What a decision comes to for somebody who reads along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// Its first metrics are not there yet.
    WarmingUp,
    Decided(OutcomeKind),
}

impl<W: Write> State<W> {
    fn print(&mut self, line: &str) {
        match &mut self.pending {
            Some(text) => {
                text.push_str(line);
                text.push('\n');
            }
            // If nobody reads any more, nothing is lost.
            None => {
                let _ = writeln!(self.out, "{line}");
                let _ = self.out.flush();
            }
        }
    }
}

impl<W: Write + Send> DecisionLog<W> {
    /// Prints into `out`, with the time since now, as soon as it is [opened](DecisionLog::open).
    pub fn new(clock: Clock, out: W) -> DecisionLog<W> {
        let pending = Some(String::new());
        let state = Mutex::new(State { out, last: HashMap::new(), pending });
        DecisionLog { clock, started: clock.now(), state }
    }

    /// Prints this banner, then what has happened already, and from now on whatever happens.
    pub fn open(&self, banner: &str) {
        let mut state = self.state.lock();
        let pending = state.pending.take().unwrap_or_default();
        state.print(banner);
        pending.lines().for_each(|line| state.print(line));
    }

    fn since_start(&self) -> SignedDuration {
        self.clock.now().duration_since(self.started)
    }

    fn elapsed(&self) -> String {
        let seconds = self.since_start().as_secs().max(0);
        let (minutes, seconds) = (seconds / 60, seconds % 60);
        match minutes / 60 {
            0 => format!("{minutes:02}:{seconds:02}"),
            hours => format!("{hours}:{:02}:{seconds:02}", minutes % 60),
        }
    }

    /// Whether a decision failed for nothing but metrics that were never there so far.
    fn is_warming_up(&self, decided: &Decided<'_>, before: Option<Seen>) -> bool {
        let unread = |step: Step<'_>| matches!(step, Step::Invalid { .. });
        matches!(before, None | Some(Seen::WarmingUp))
            && decided.outcome_kind() == OutcomeKind::Failed
            && decided.decision().rescale.is_none()
            && decided.decision().steps.iter().any(unread)
            && self.since_start() < WARM_UP
    }
}

/// The sign and the text of a line.
fn line(seen: Seen, view: DecisionView, decided: &Decided<'_>) -> (&'static str, String) {
    let DecisionView { from, to, reason, .. } = view;
    match seen {
        Seen::WarmingUp => ("·", format!("stays {from}  its first metrics are not there yet")),
        Seen::Decided(OutcomeKind::Up) => ("▲", format!("{from} → {to}  {}", why(decided))),
        Seen::Decided(OutcomeKind::Down) => ("▼", format!("{from} → {to}  {}", why(decided))),
        Seen::Decided(OutcomeKind::Failed) => ("✗", reason),
        Seen::Decided(OutcomeKind::Withheld) => {
            ("·", format!("stays {from}  would be {to}: {}", why(decided)))
        }
        Seen::Decided(_) => ("·", format!("stays {from}  {reason}")),
    }
}

impl<W: Write + Send> Observer for DecisionLog<W> {
    fn decided(&self, decided: &Decided<'_>) {
        let mut state = self.state.lock();
        let before = state.last.get(decided.key()).copied();
        let seen = if self.is_warming_up(decided, before) {
            Seen::WarmingUp
        } else {
            Seen::Decided(decided.outcome_kind())
        };
        state.last.insert(decided.key().clone(), seen);
        let news = match seen {
            Seen::Decided(OutcomeKind::Up | OutcomeKind::Down) => true,
            Seen::Decided(OutcomeKind::Steady) => false,
            other => before != Some(other),
        };
        if news {
            let (sign, text) = line(seen, Picture::of(decided).decision(), decided);
            let (time, key) = (self.elapsed(), decided.key().to_string());
            state.print(&format!("{time}  {sign} {key:<24} {text}"));
        }
    }

    fn gone(&self, key: &Key) {
        let mut state = self.state.lock();
        if state.last.remove(key).is_some() {
            let time = self.elapsed();
            state.print(&format!("{time}  - {key} is gone"));
        }
    }

    fn jobs_decided(&self, decided: &JobsDecided<'_>) {
        let mut state = self.state.lock();
        let before = state.last.get(decided.key).copied();
        let seen = Seen::Decided(decided.outcome_kind());
        state.last.insert(decided.key.clone(), seen);
        let (sign, text) = match decided.outcome_kind() {
            OutcomeKind::Up => ("▲", format!("+{} Jobs  {}", decided.created(), decided.reason())),
            OutcomeKind::Steady => return,
            _ if before == Some(seen) => return,
            OutcomeKind::Failed => ("✗", decided.reason()),
            _ => ("·", decided.reason()),
        };
        let (time, key) = (self.elapsed(), decided.key.to_string());
        state.print(&format!("{time}  {sign} {key:<24} {text}"));
    }
}
