//! What a pod needs of a node, worked out once per pod.

use crate::controllers::pod::{Container, Pod, controller_of};
use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm, Taint, Toleration};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::collections::BTreeMap;

/// Amounts of resources by name: cpu in thousandths of a core, all else in whole units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amounts(pub BTreeMap<String, i64>);

impl Amounts {
    /// Reads quantities; nonsense counts as nothing.
    #[must_use]
    pub fn read(quantities: &BTreeMap<String, Quantity>) -> Amounts {
        let amount = |name: &str, quantity: &Quantity| {
            let quantity = podscale_api::quantity::Quantity::parse(&quantity.0).ok();
            quantity.map_or(0, |quantity| {
                if name == "cpu" { quantity.milli_value() } else { quantity.value() }
            })
        };
        Amounts(quantities.iter().map(|(name, text)| (name.clone(), amount(name, text))).collect())
    }

    /// The amount of a resource.
    #[must_use]
    pub fn get(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Adds amounts, or takes them away.
    pub fn add(&mut self, other: &Amounts, sign: i64) {
        for (name, amount) in &other.0 {
            let sum = self.0.entry(name.clone()).or_insert(0);
            *sum = sum.saturating_add(amount.saturating_mul(sign));
        }
    }

    fn most(&mut self, other: &Amounts) {
        for (name, amount) in &other.0 {
            let most = self.0.entry(name.clone()).or_insert(0);
            *most = (*most).max(*amount);
        }
    }
}

/// What a pod needs of a node.
#[derive(Clone, Debug, Default)]
pub struct PodRequirements {
    /// The resources it is sure to get.
    pub requests: Amounts,
    /// Protocols and ports that it needs on the node.
    pub ports: Vec<(String, i32)>,
    /// The uid of its controller, whose pods should be spread.
    pub owner: Option<String>,
    node_labels: BTreeMap<String, String>,
    /// Any of these is enough; none at all is no requirement.
    node_terms: Option<Vec<NodeSelectorTerm>>,
    tolerations: Vec<Toleration>,
}

impl PodRequirements {
    /// The requirements of a pod.
    #[must_use]
    pub fn of(pod: &Pod) -> PodRequirements {
        let containers = pod.spec.containers.iter().chain(&pod.spec.init_containers);
        let ports = containers.flat_map(|container| &container.ports).filter_map(|port| {
            let number = port.host_port.filter(|number| *number > 0)?;
            Some((port.protocol.clone().unwrap_or_else(|| "TCP".into()), number))
        });
        let affinity = pod.spec.affinity.as_ref();
        let affinity = affinity.and_then(|affinity| affinity.node_affinity.as_ref());
        let required = affinity.and_then(|affinity| {
            affinity.required_during_scheduling_ignored_during_execution.as_ref()
        });
        PodRequirements {
            requests: requests(pod),
            ports: ports.collect(),
            owner: controller_of(&pod.metadata).map(|owner| owner.uid.clone()),
            node_labels: pod.spec.node_selector.clone(),
            node_terms: required.map(|required| required.node_selector_terms.clone()),
            tolerations: pod.spec.tolerations.clone(),
        }
    }

    /// Whether a node of this name and these labels will do.
    #[must_use]
    pub fn accepts(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        let chosen = self.node_labels.iter().all(|(key, value)| labels.get(key) == Some(value));
        chosen
            && self
                .node_terms
                .as_ref()
                .is_none_or(|terms| terms.iter().any(|term| matches_term(term, name, labels)))
    }

    /// Whether it bears a taint.
    #[must_use]
    pub fn tolerates(&self, taint: &Taint) -> bool {
        self.tolerations.iter().any(|toleration| tolerates(toleration, taint))
    }
}

/// All containers run at the same time; before them the init containers, one by one, each beside the
/// sidecars that were started before it.
fn requests(pod: &Pod) -> Amounts {
    let of = |container: &Container| Amounts::read(&container.resources.requests);
    let mut running = Amounts::default();
    for container in &pod.spec.containers {
        running.add(&of(container), 1);
    }
    let (mut sidecars, mut starting) = (Amounts::default(), Amounts::default());
    for container in &pod.spec.init_containers {
        let own = of(container);
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars.add(&own, 1);
            starting.most(&sidecars);
        } else {
            let mut now = sidecars.clone();
            now.add(&own, 1);
            starting.most(&now);
        }
    }
    running.add(&sidecars, 1);
    running.most(&starting);
    running.add(&Amounts::read(&pod.spec.overhead), 1);
    running
}

/// Whether a toleration covers a taint.
#[must_use]
pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.as_deref().filter(|effect| !effect.is_empty());
    if effect.is_some_and(|effect| effect != taint.effect) {
        return false;
    }
    let key = toleration.key.as_deref().filter(|key| !key.is_empty());
    if key.is_some_and(|key| key != taint.key) {
        return false;
    }
    match toleration.operator.as_deref() {
        Some("Exists") => true,
        None | Some("" | "Equal") => {
            key.is_some()
                && toleration.value.as_deref().unwrap_or_default()
                    == taint.value.as_deref().unwrap_or_default()
        }
        Some(_) => false,
    }
}

/// A term without requirements matches nothing.
fn matches_term(term: &NodeSelectorTerm, name: &str, labels: &BTreeMap<String, String>) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    !(expressions.is_empty() && fields.is_empty())
        && expressions.iter().all(|one| matches(one, labels.get(&one.key).map(String::as_str)))
        && fields.iter().all(|one| one.key == "metadata.name" && matches(one, Some(name)))
}

fn matches(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let listed = || value.is_some_and(|value| values.iter().any(|known| known == value));
    let compared = |test: fn(i64, i64) -> bool| {
        let value = value.and_then(|value| value.parse().ok());
        let limit = values.first().and_then(|limit| limit.parse().ok());
        value.zip(limit).is_some_and(|(value, limit)| test(value, limit))
    };
    match requirement.operator.as_str() {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compared(|value, limit| value > limit),
        "Lt" => compared(|value, limit| value < limit),
        _ => false,
    }
}
