//! How objects and their variants do against the best of their peers, over all loads.

use super::super::grid::Grid;
use podscale_sim::policy::Peer;
use podscale_sim::policy::peers::PeerKind;
use podscale_sim::score::Summary;

/// How many times as many requests may go wrong before one load counts as worse.
const WORSE: f64 = 1.1;
/// Parts of all requests that are too small to make a difference.
const NOTHING: f64 = 1e-4;

/// One row of the table over all loads.
struct Policy<'a> {
    name: &'a str,
    place: usize,
    kind: Option<PeerKind>,
    summary: &'a Summary,
    /// Pod-hours as a multiple of the oracle's.
    cost: f64,
}

impl Policy<'_> {
    fn is_rival(&self) -> bool {
        matches!(
            self.kind,
            Some(PeerKind::HpaCpu | PeerKind::HpaRps | PeerKind::Keda | PeerKind::Knative)
        )
    }

    fn is_hpa(&self) -> bool {
        matches!(self.kind, Some(PeerKind::HpaCpu | PeerKind::HpaRps))
    }

    fn violations(&self) -> f64 {
        self.summary.violations.mean
    }
}

/// The cells of the table, its header first; nothing without an oracle or without anything to compare.
pub(super) fn cells(grid: &Grid) -> Option<Vec<Vec<String>>> {
    let policies: Vec<Policy<'_>> = grid
        .overall
        .iter()
        .enumerate()
        .map(|(place, (name, summary))| {
            let kind = Peer::parse(name).ok().map(|peer| peer.kind());
            let cost = summary.against_oracle?.mean;
            Some(Policy { name, place, kind, summary, cost })
        })
        .collect::<Option<_>>()?;
    let own: Vec<&Policy<'_>> = policies.iter().filter(|policy| policy.kind.is_none()).collect();
    if own.is_empty() || !policies.iter().any(Policy::is_rival) {
        return None;
    }
    let header = [
        "POLICY",
        "POD-HOURS",
        "VIOLATIONS",
        "BEST PEER AT NO FEWER POD-HOURS",
        "ITS VIOLATIONS",
        "OF THOSE",
        "REVERSALS/H",
        "HPA'S",
        "LOADS WORSE THAN HPA",
    ];
    let mut table = vec![header.map(str::to_owned).to_vec()];
    table.extend(own.into_iter().map(|policy| row(policy, &policies, grid)));
    Some(table)
}

/// The one with the fewest violations of those that cost no less.
fn best<'a>(
    policy: &Policy<'_>,
    policies: &'a [Policy<'a>],
    counts: fn(&Policy<'_>) -> bool,
) -> Option<&'a Policy<'a>> {
    let dear = policies.iter().filter(|other| counts(other) && other.cost >= policy.cost);
    dear.min_by(|one, other| one.violations().total_cmp(&other.violations()))
}

fn row(policy: &Policy<'_>, policies: &[Policy<'_>], grid: &Grid) -> Vec<String> {
    let percent = |part: f64| format!("{:.3}%", part * 100.0);
    let none = || "-".to_owned();
    let peer = best(policy, policies, |peer| peer.is_rival());
    let hpa = best(policy, policies, |peer| peer.is_hpa());
    let share = peer.map(|peer| policy.violations() / peer.violations().max(1e-9));
    let reversals = |policy: &Policy<'_>| format!("{:.2}", policy.summary.reversals_per_hour.mean);
    vec![
        policy.name.to_owned(),
        format!("{:.2}x", policy.cost),
        percent(policy.violations()),
        peer.map_or_else(none, |peer| format!("{} ({:.2}x)", peer.name, peer.cost)),
        peer.map_or_else(none, |peer| percent(peer.violations())),
        share.map_or_else(none, |share| format!("{share:.2}")),
        reversals(policy),
        hpa.map_or_else(none, reversals),
        hpa.map_or_else(none, |hpa| worse(policy, hpa, grid)),
    ]
}

/// The loads under which clearly more goes wrong than with the HPA.
fn worse(policy: &Policy<'_>, hpa: &Policy<'_>, grid: &Grid) -> String {
    let loads = grid.trials.iter().filter(|trial| {
        let of = |place: usize| trial.cells.get(place).map(|cell| cell.summary.violations.mean);
        let (Some(own), Some(other)) = (of(policy.place), of(hpa.place)) else { return false };
        own > other * WORSE + NOTHING
    });
    let names: Vec<&str> = loads.map(|trial| trial.load.as_str()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
