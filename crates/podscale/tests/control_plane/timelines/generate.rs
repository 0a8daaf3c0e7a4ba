//! Random timelines: the same seed makes the same one.

use super::change::{Change, MetricsApi, Step, Timeline};
use super::random::Random;
use super::specs;
use super::values::{beginning_metrics, external, random_answer, random_fault, samples};
use super::workload::{Kind, Life, Requests, Selects, Target};
use serde_json::{Value, json};
use std::collections::{BTreeSet, VecDeque};

/// How many autoscalers a timeline begins with: one for each of twelve targets, then second ones from
/// this number on, and then those whose target does not exist.
const AUTOSCALERS: usize = 16;
const SECOND: usize = 12;
const LOST: usize = 14;

/// What the generator knows of what it has made so far. It never reads from a cluster.
struct Generator {
    random: Random,
    targets: Vec<Target>,
    missing_targets: BTreeSet<String>,
    autoscalers: BTreeSet<String>,
    broken: BTreeSet<MetricsApi>,
    strays: usize,
    /// Whether the first objects are being made.
    begins: bool,
    /// Changes that have a step for themselves.
    delicate: VecDeque<Change>,
}

/// A timeline of so many steps after the one that makes the objects.
pub fn generate(seed: u64, steps: usize) -> Timeline {
    let mut generator = Generator {
        random: Random::new(seed),
        targets: Vec::new(),
        missing_targets: BTreeSet::new(),
        autoscalers: BTreeSet::new(),
        broken: BTreeSet::new(),
        strays: 0,
        begins: true,
        delicate: VecDeque::new(),
    };
    let mut timeline = vec![generator.beginning()];
    timeline.extend((0..steps).map(|_| generator.step()));
    Timeline(timeline)
}

impl Generator {
    fn step(&mut self) -> Step {
        let mut changes = Vec::new();
        let count = usize::try_from(self.random.between(2, 5)).unwrap_or(2);
        while changes.len() < count && self.delicate.is_empty() {
            let (delicate, others): (Vec<_>, Vec<_>) =
                self.change().into_iter().partition(Change::is_delicate);
            self.delicate.extend(delicate);
            changes.extend(others);
        }
        match self.delicate.pop_front() {
            Some(change) if changes.is_empty() => {
                Step { changes: vec![change], pods_follow: false }
            }
            Some(change) => {
                self.delicate.push_front(change);
                Step::from(changes)
            }
            None => Step::from(changes),
        }
    }

    fn beginning(&mut self) -> Step {
        let kinds = [
            Kind::Deployment,
            Kind::Deployment,
            Kind::Deployment,
            Kind::Deployment,
            Kind::StatefulSet,
            Kind::ReplicaSet,
            Kind::ReplicationController,
            Kind::Widget,
            Kind::Widget,
            Kind::Widget,
            Kind::Gadget,
            Kind::Gadget,
        ];
        let mut changes = Vec::new();
        for (number, kind) in kinds.into_iter().enumerate() {
            let mut target = Target::new(kind, &format!("t{number}"), self.random.between(1, 4));
            target.containers = self.random.pick(&[1, 1, 1, 2]);
            target.requests = self.random.pick(&[
                Requests::Each,
                Requests::Each,
                Requests::Each,
                Requests::Each,
                Requests::Each,
                Requests::First,
                Requests::Nobody,
                Requests::Pod,
                Requests::Sidecar,
            ]);
            if kind != Kind::ReplicationController {
                target.selects = self.random.pick(&[
                    Selects::App,
                    Selects::App,
                    Selects::App,
                    Selects::App,
                    Selects::Sets,
                    Selects::Tier,
                ]);
            }
            changes.push(Change::CreateTarget(target.clone()));
            changes.extend(beginning_metrics(&target));
            self.targets.push(target);
        }
        changes.push(external("shared", &["6", "3"]));
        for number in 0..AUTOSCALERS {
            let object = self.autoscaler(&format!("a{number}"), number);
            let change = Change::CreateAutoscaler(object);
            match number {
                SECOND..LOST => self.delicate.push_back(change),
                _ => changes.push(change),
            }
        }
        self.begins = false;
        Step::from(changes)
    }

    /// One for each target first, then second ones, then those of no target at all.
    fn autoscaler(&mut self, name: &str, number: usize) -> Value {
        let random = &mut self.random;
        let target = match self.targets.get(number) {
            Some(target) => target.clone(),
            None => random.pick(&self.targets),
        };
        let reference = match number {
            LOST.. => specs::lost_reference(random),
            _ => specs::random_reference(random, &target),
        };
        let metrics = specs::random_metrics(random, &target);
        // Another one must accept every size: while the bounds force a size, no selector is registered,
        // and the two may pull the target to and fro until their passes happen to meet.
        let range = match self.begins && number < SECOND {
            true => specs::random_range(random),
            false => specs::WHOLE_RANGE,
        };
        let mut object = specs::autoscaler(name, reference, range, metrics);
        if random.percent(35) {
            object["spec"]["behavior"] = specs::random_behavior(random);
        }
        let scalable_to_zero = object["spec"]["metrics"].to_string().contains("queue");
        if scalable_to_zero && random.percent(40) {
            object["spec"]["minReplicas"] = json!(0);
        }
        self.autoscalers.insert(name.to_owned());
        object
    }

    fn change(&mut self) -> Vec<Change> {
        match self.random.below(100) {
            0..=29 => vec![self.metric()],
            30..=49 => vec![self.pod()],
            50..=57 => vec![self.scale()],
            58..=63 => vec![self.target()],
            64..=71 => vec![self.scale_answer()],
            72..=87 => self.edit(),
            88..=92 => vec![self.autoscaler_comes_or_goes()],
            _ => vec![self.api()],
        }
    }

    fn a_target(&mut self) -> Target {
        self.random.pick(&self.targets)
    }

    fn an_autoscaler(&mut self) -> Option<String> {
        let all: Vec<String> = self.autoscalers.iter().cloned().collect();
        (!all.is_empty()).then(|| self.random.pick(&all))
    }

    fn metric(&mut self) -> Change {
        let target = self.a_target();
        let random = &mut self.random;
        match random.below(10) {
            0..=3 => {
                let amounts = ["0", "10m", "45m", "50m", "60m", "100m", "200m", "333333333n"];
                Change::Usage {
                    app: target.name,
                    metric: "cpu".into(),
                    samples: samples(random, &amounts),
                }
            }
            4 => {
                let amounts = ["0", "16Mi", "32Mi", "48Mi", "64000Ki", "128Mi", "1e8"];
                Change::Usage {
                    app: target.name,
                    metric: "memory".into(),
                    samples: samples(random, &amounts),
                }
            }
            5 | 6 => {
                let amounts = ["0", "500m", "3", "10", "20", "1k"];
                Change::Usage {
                    app: target.name,
                    metric: "rps".into(),
                    samples: samples(random, &amounts),
                }
            }
            7 => {
                let name = &target.name;
                let object = random.pick(&[
                    format!("services/{name}"),
                    format!("services/{name}"),
                    format!("pods/{name}"),
                    // Of the namespace itself.
                    "metrics".to_owned(),
                ]);
                let amount = random.pick(&["0", "5", "10", "12", "40", "-3", "1M", "what"]);
                let amount = (!random.percent(20)).then(|| amount.to_owned());
                Change::Object { object, metric: "hits".into(), amount }
            }
            _ => {
                let name = random.pick(&["shared".to_owned(), format!("queue-{}", target.name)]);
                let count = random.pick(&[1, 1, 1, 2, 3, 0]);
                let amount = |random: &mut Random| {
                    random
                        .pick(&["0", "1", "4", "8", "20", "2500m", "-5", "1M", "three", ""])
                        .to_owned()
                };
                let amounts = (0..count).map(|_| amount(random)).collect();
                let amounts = (!random.percent(12)).then_some(amounts);
                Change::External { metric: name, amounts }
            }
        }
    }

    fn pod(&mut self) -> Change {
        let target = self.a_target();
        let other = self.a_target();
        let random = &mut self.random;
        let pod = format!("{}-{}", target.name, random.below(4));
        match random.below(12) {
            0..=5 => Change::Pod { pod, life: random.pick(&Life::ALL) },
            6 => Change::Relabel { pod, label: "app".into(), value: Some(other.name) },
            7 => {
                let (label, value) = random.pick(&[
                    ("app", None),
                    ("tier", None),
                    ("tier", Some("a".to_owned())),
                    ("tier", Some(other.tier)),
                ]);
                Change::Relabel { pod, label: label.into(), value }
            }
            8 => Change::Orphan(pod),
            9 => Change::DeletePod(pod),
            10 => Change::Terminate(pod),
            _ => {
                self.strays += 1;
                let requests = random.pick(&[Requests::Each, Requests::Each, Requests::Nobody]);
                let like = Target { requests, ..target };
                Change::Stray { pod: format!("stray-{}", self.strays), like }
            }
        }
    }

    fn scale(&mut self) -> Change {
        let target = self.a_target();
        if target.kind == Kind::Widget && self.random.percent(15) {
            return Change::LoseSize(target);
        }
        Change::Scale { target, replicas: self.random.pick(&[0, 0, 1, 2, 3, 5, 7, 11]) }
    }

    fn target(&mut self) -> Change {
        if let Some(name) = self.missing_targets.pop_first()
            && let Some(target) = self.targets.iter().find(|target| target.name == name)
        {
            let replicas = self.random.between(0, 4);
            return Change::CreateTarget(Target { replicas, ..target.clone() });
        }
        let target = self.a_target();
        self.missing_targets.insert(target.name.clone());
        Change::DeleteTarget { target, with_pods: self.random.percent(50) }
    }

    /// A custom resource has another selector, or a Gadget answers oddly.
    fn scale_answer(&mut self) -> Change {
        let odd = [Kind::Widget, Kind::Gadget];
        let odd: Vec<Target> =
            self.targets.iter().filter(|target| odd.contains(&target.kind)).cloned().collect();
        let target = self.random.pick(&odd);
        let other = self.a_target();
        let random = &mut self.random;
        let name = &target.name;
        if target.kind == Kind::Gadget && random.percent(60) {
            let (gadget, answer) = (name.clone(), random_answer(random, name));
            return match random.percent(70) {
                true => Change::AnswerGet { gadget, answer },
                false => Change::AnswerPut { gadget, answer },
            };
        }
        let selector = match random.below(12) {
            0..=3 => Some(target.selector_text()),
            4 => Some(String::new()),
            5 => None,
            6 => Some("!!bad".to_owned()),
            7 => Some(format!("tier notin (b,a), app in ({name})")),
            8 => Some(format!("app={name},!gone")),
            9 => Some(format!("app = {name} , tier != x")),
            10 => Some(format!("app={}", other.name)),
            _ => Some(
                random
                    .pick(&["app=", "a b", "app in ()", "x>1,app", "=", "app=a=b", ","])
                    .to_owned(),
            ),
        };
        Change::Selector { target, selector }
    }

    fn edit(&mut self) -> Vec<Change> {
        let Some(name) = self.an_autoscaler() else { return Vec::new() };
        let target = self.a_target();
        let random = &mut self.random;
        let spec = match random.below(10) {
            0..=3 => {
                let (min, max) = specs::random_range(random);
                json!({"minReplicas": min, "maxReplicas": max})
            }
            4 => json!({"minReplicas": 0}),
            5 | 6 => {
                let behavior = specs::random_behavior(random);
                json!({"behavior": random.pick(&[Value::Null, behavior])})
            }
            7 => json!({"metrics": specs::random_metrics(random, &target)}),
            8 => json!({"scaleTargetRef": specs::random_reference(random, &target),
                "minReplicas": specs::WHOLE_RANGE.0, "maxReplicas": specs::WHOLE_RANGE.1}),
            _ => json!({"scaleTargetRef": specs::lost_reference(random)}),
        };
        vec![Change::EditAutoscaler { name, patch: json!({"spec": spec}) }]
    }

    fn autoscaler_comes_or_goes(&mut self) -> Change {
        let missing =
            (0..AUTOSCALERS).find(|number| !self.autoscalers.contains(&format!("a{number}")));
        match (missing, self.an_autoscaler()) {
            (Some(number), _) => {
                Change::CreateAutoscaler(self.autoscaler(&format!("a{number}"), number))
            }
            (None, Some(name)) => {
                self.autoscalers.remove(&name);
                Change::DeleteAutoscaler(name)
            }
            (None, None) => Change::CreateAutoscaler(self.autoscaler("a0", 0)),
        }
    }

    fn api(&mut self) -> Change {
        if let Some(api) = self.broken.pop_first() {
            return Change::Fault { api, fault: None };
        }
        let random = &mut self.random;
        let api = random.pick(&[MetricsApi::Resource, MetricsApi::Custom, MetricsApi::External]);
        self.broken.insert(api);
        let fault = random_fault(random);
        Change::Fault { api, fault: Some(fault) }
    }
}
