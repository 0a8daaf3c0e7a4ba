//! How objects and their variants do against the best of their peers, over all loads.

use super::super::grid::Grid;
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
    fn is_own(&self) -> bool {
        self.kind.is_none()
    }

    fn pod_hours(&self) -> f64 {
        self.summary.pod_hours.mean
    }

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

/// All rows of the table over all loads; nothing without an oracle or without anything to compare.
fn policies(grid: &Grid) -> Option<Vec<Policy<'_>>> {
    let policies: Vec<Policy<'_>> = grid
        .overall
        .iter()
        .zip(&grid.peers)
        .enumerate()
        .map(|(place, ((name, summary), kind))| {
            let kind = *kind;
            let cost = summary.against_oracle?.mean;
            Some(Policy { name, place, kind, summary, cost })
        })
        .collect::<Option<_>>()?;
    let is_of_use = policies.iter().any(Policy::is_own) && policies.iter().any(Policy::is_rival);
    is_of_use.then_some(policies)
}

/// The cells of the table of objects, its header first.
pub(super) fn cells(grid: &Grid) -> Option<Vec<Vec<String>>> {
    let policies = policies(grid)?;
    let own = policies.iter().filter(|policy| policy.is_own());
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
    table.extend(own.map(|policy| row(policy, &policies, grid)));
    Some(table)
}

/// The cells of the table of peers, its header first: for each the objects with the fewest violations of those that
/// cost no more, by pod-hours over all loads and by the mean over loads of their multiple of the oracle's.
pub(super) fn cells_of_peers(grid: &Grid) -> Option<Vec<Vec<String>>> {
    let policies = policies(grid)?;
    let header = [
        "PEER",
        "POD-HOURS",
        "VS ORACLE",
        "VIOLATIONS",
        "REVERSALS/H",
        "BEST AT NO MORE POD-HOURS",
        "OF ITS VIOLATIONS",
        "REVERSALS/H",
        "BEST AT NO MORE VS ORACLE",
        "OF ITS VIOLATIONS",
        "REVERSALS/H",
    ];
    let mut table = vec![header.map(str::to_owned).to_vec()];
    for peer in policies.iter().filter(|policy| policy.is_rival()) {
        let mut row = vec![
            peer.name.to_owned(),
            format!("{:.0}", peer.pod_hours()),
            format!("{:.2}x", peer.cost),
            format!("{:.3}%", peer.violations() * 100.0),
            reversals(peer),
        ];
        let costs: [fn(&Policy<'_>) -> f64; 2] =
            [|policy| policy.pod_hours(), |policy| policy.cost];
        for cost in costs {
            let own = policies.iter().filter(|own| own.is_own() && cost(own) <= cost(peer));
            let best = own.min_by(|one, other| one.violations().total_cmp(&other.violations()));
            row.extend(match best {
                None => ["-", "-", "-"].map(str::to_owned),
                Some(best) => [
                    best.name.to_owned(),
                    format!("{:.2}", best.violations() / peer.violations().max(1e-9)),
                    reversals(best),
                ],
            });
        }
        table.push(row);
    }
    Some(table)
}

/// How restless it was; nothing where that is not scored.
fn reversals(policy: &Policy<'_>) -> String {
    let mean = policy.summary.reversals_per_hour.mean;
    if mean.is_nan() { "-".to_owned() } else { format!("{mean:.2}") }
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

#[cfg(test)]
mod tests {
    use super::*;
    use podscale_sim::score::Estimate;

    /// Violations, pod-hours, and those as a multiple of the oracle's.
    fn summary([violations, hours, cost]: [f64; 3]) -> Summary {
        let estimate = |mean| Estimate { mean, ..Estimate::default() };
        Summary {
            violations: estimate(violations),
            pod_hours: estimate(hours),
            against_oracle: Some(estimate(cost)),
            reversals_per_hour: estimate(hours / 10.0),
            ..Summary::default()
        }
    }

    #[test]
    fn each_peer_stands_beside_the_best_that_costs_no_more() {
        let rows = [
            ("cheap", [0.02, 10.0, 1.5], None),
            ("safe", [0.004, 20.0, 1.2], None),
            ("hpa-cpu", [0.01, 20.0, 1.4], Some(PeerKind::HpaCpu)),
            ("knative", [0.04, 5.0, 1.0], Some(PeerKind::Knative)),
            ("oracle", [0.0, 8.0, 1.0], Some(PeerKind::Oracle)),
        ];
        let grid = Grid {
            first_seed: 1,
            trials: Vec::new(),
            overall: rows.iter().map(|(name, of, _)| ((*name).to_owned(), summary(*of))).collect(),
            peers: rows.iter().map(|(_, _, kind)| *kind).collect(),
        };
        let table = cells_of_peers(&grid).expect("a table");
        let lines: Vec<String> = table.iter().skip(1).map(|row| row.join(" ")).collect();
        assert_eq!(
            lines,
            [
                "hpa-cpu 20 1.40x 1.000% 2.00 safe 0.40 2.00 safe 0.40 2.00",
                "knative 5 1.00x 4.000% 0.50 - - - - - -"
            ],
            "an oracle is no rival"
        );
        assert_eq!(table[0].len(), 11);
        let alone = Grid { peers: vec![None; rows.len()], ..grid };
        assert_eq!(cells_of_peers(&alone), None, "nobody to compare with");
    }
}
