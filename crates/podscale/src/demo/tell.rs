//! Tells what is decided, and why, in lines that people read while they watch.

use crate::controller::observer::{Decided, Observer, why};
use crate::dashboard::{Outcome, Picture};
use crate::dialect::Key;
use jiff::Timestamp;
use parking_lot::Mutex;
use podscale_client::clock::Clock;
use std::collections::HashMap;
use std::io::Write;

/// Writes a line for every change of size, and whenever something new stands in its way.
pub struct Teller<W> {
    clock: Clock,
    started: Timestamp,
    state: Mutex<State<W>>,
}

struct State<W> {
    out: W,
    last: HashMap<Key, Outcome>,
    /// What happened before it was said where to look; told right after that.
    held_back: Option<String>,
}

impl<W: Write> State<W> {
    fn tell(&mut self, line: &str) {
        match &mut self.held_back {
            Some(text) => {
                text.push_str(line);
                text.push('\n');
            }
            // If nobody reads any more there is nobody to tell.
            None => {
                let _ = writeln!(self.out, "{line}");
                let _ = self.out.flush();
            }
        }
    }
}

impl<W: Write + Send> Teller<W> {
    /// Tells into `out`, with the time since now, as soon as it is [opened](Teller::open).
    pub fn new(clock: Clock, out: W) -> Teller<W> {
        let held_back = Some(String::new());
        let state = Mutex::new(State { out, last: HashMap::new(), held_back });
        Teller { clock, started: clock.now(), state }
    }

    /// Says this, then what has happened already, and from now on whatever happens.
    pub fn open(&self, text: &str) {
        let mut state = self.state.lock();
        let held_back = state.held_back.take().unwrap_or_default();
        state.tell(text);
        held_back.lines().for_each(|line| state.tell(line));
    }

    fn elapsed(&self) -> String {
        let seconds = self.clock.now().duration_since(self.started).as_secs().max(0);
        let (minutes, seconds) = (seconds / 60, seconds % 60);
        match minutes / 60 {
            0 => format!("{minutes:02}:{seconds:02}"),
            hours => format!("{hours}:{:02}:{seconds:02}", minutes % 60),
        }
    }
}

impl<W: Write + Send> Observer for Teller<W> {
    fn decided(&self, decided: &Decided<'_>) {
        let told = Picture::of(decided).told();
        let sign = match told.outcome {
            Outcome::Up => "▲",
            Outcome::Down => "▼",
            Outcome::Failed => "✗",
            _ => "·",
        };
        let text = match told.outcome {
            Outcome::Up | Outcome::Down => {
                format!("{} → {}  {}", told.from, told.to, why(decided))
            }
            Outcome::Failed => told.reason,
            _ => format!("stays {}  {}", told.from, told.reason),
        };
        let mut state = self.state.lock();
        let before = state.last.insert(decided.key().clone(), told.outcome);
        let news = match told.outcome {
            Outcome::Up | Outcome::Down => true,
            Outcome::Steady => false,
            other => before != Some(other),
        };
        if news {
            let (time, key) = (self.elapsed(), decided.key().to_string());
            state.tell(&format!("{time}  {sign} {key:<24} {text}"));
        }
    }

    fn gone(&self, key: &Key) {
        let mut state = self.state.lock();
        if state.last.remove(key).is_some() {
            let time = self.elapsed();
            state.tell(&format!("{time}  - {key} is gone"));
        }
    }
}
