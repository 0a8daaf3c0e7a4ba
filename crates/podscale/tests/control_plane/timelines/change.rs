//! What can happen in a timeline: every change is a value that can be shown and made again.

use super::workload::{Life, Target};
use serde_json::Value;
use std::fmt;

/// The metrics APIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MetricsApi {
    Resource,
    Custom,
    External,
}

/// What is served instead of the right answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canned {
    pub code: u16,
    pub body: String,
}

impl Canned {
    pub fn new(code: u16, body: &str) -> Canned {
        Canned { code, body: body.to_owned() }
    }

    /// A Status object.
    pub fn status(code: u16, reason: &str, message: &str) -> Canned {
        let status = serde_json::json!({"kind": "Status", "apiVersion": "v1", "metadata": {},
            "status": "Failure", "reason": reason, "message": message, "code": code});
        Canned { code, body: status.to_string() }
    }
}

impl fmt::Display for Canned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.code, self.body)
    }
}

/// The samples of an application's pods. Amounts are quantities as a server writes them, which may be
/// no quantities at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// What each pod has; no pod has any if it is absent.
    pub each: Option<String>,
    /// What the first pod has instead.
    pub first: Option<String>,
    /// Only every other pod has one.
    pub partial: bool,
    /// They are years old.
    pub stale: bool,
}

impl Samples {
    pub fn each(amount: &str) -> Samples {
        Samples { each: Some(amount.to_owned()), ..Samples::default() }
    }
}

impl fmt::Display for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.each {
            Some(each) => write!(f, "{each}")?,
            None => return write!(f, "gone"),
        }
        if let Some(first) = &self.first {
            write!(f, ", the first pod's {first}")?;
        }
        if self.partial {
            write!(f, ", of every other pod")?;
        }
        if self.stale {
            write!(f, ", stale")?;
        }
        Ok(())
    }
}

/// One change.
#[derive(Clone, Debug)]
pub enum Change {
    CreateTarget(Target),
    DeleteTarget {
        target: Target,
        with_pods: bool,
    },
    /// Somebody sets the size of a workload by hand.
    Scale {
        target: Target,
        replicas: i32,
    },
    /// A custom resource loses its size.
    LoseSize(Target),
    /// A custom resource or a Gadget reports another selector.
    Selector {
        target: Target,
        selector: Option<String>,
    },
    /// A Gadget answers something else when its scale is read.
    AnswerGet {
        gadget: String,
        answer: Option<Canned>,
    },
    /// The same, when its scale is written.
    AnswerPut {
        gadget: String,
        answer: Option<Canned>,
    },
    CreateAutoscaler(Value),
    EditAutoscaler {
        name: String,
        patch: Value,
    },
    DeleteAutoscaler(String),
    Pod {
        pod: String,
        life: Life,
    },
    /// A pod gets another label, or loses one; its workload no longer counts it.
    Relabel {
        pod: String,
        label: String,
        value: Option<String>,
    },
    /// Its workload no longer counts it, but its labels stay.
    Orphan(String),
    DeletePod(String),
    /// It is deleted, but does not go.
    Terminate(String),
    /// A pod with the labels of a workload that is none of its own, perhaps without requests.
    Stray {
        pod: String,
        like: Target,
    },
    /// Resource metrics (`cpu`, `memory`) or custom metrics of pods.
    Usage {
        app: String,
        metric: String,
        samples: Samples,
    },
    /// A metric of an object: `services/front`.
    Object {
        object: String,
        metric: String,
        amount: Option<String>,
    },
    /// The series of an external metric, each with its label `shard`; `None`: there is no such metric.
    External {
        metric: String,
        amounts: Option<Vec<String>>,
    },
    Fault {
        api: MetricsApi,
        fault: Option<Canned>,
    },
}

impl Change {
    /// Whether it may make an autoscaler ambiguous that was not. Whoever is reconciled first then still
    /// acts on everything else that has changed, so nothing else may.
    pub fn is_delicate(&self) -> bool {
        match self {
            Change::CreateTarget(_)
            | Change::Selector { .. }
            | Change::AnswerGet { .. }
            | Change::CreateAutoscaler(_) => true,
            Change::EditAutoscaler { patch, .. } => !patch["spec"]["scaleTargetRef"].is_null(),
            _ => false,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::CreateTarget(target) => write!(f, "create {target}"),
            Change::DeleteTarget { target, with_pods } => {
                let pods = if *with_pods { "and its pods" } else { "but not its pods" };
                write!(f, "delete {} {} {pods}", target.kind.name(), target.name)
            }
            Change::Scale { target, replicas } => {
                write!(f, "scale {} {} to {replicas} by hand", target.kind.name(), target.name)
            }
            Change::LoseSize(target) => {
                write!(f, "{} {} loses its size", target.kind.name(), target.name)
            }
            Change::Selector { target, selector } => {
                write!(f, "selector of {} {}: {selector:?}", target.kind.name(), target.name)
            }
            Change::AnswerGet { gadget, answer } => answered(f, gadget, "GET", answer.as_ref()),
            Change::AnswerPut { gadget, answer } => answered(f, gadget, "PUT", answer.as_ref()),
            Change::CreateAutoscaler(object) => {
                write!(f, "create autoscaler {}: {}", object["metadata"]["name"], object["spec"])
            }
            Change::EditAutoscaler { name, patch } => write!(f, "edit autoscaler {name}: {patch}"),
            Change::DeleteAutoscaler(name) => write!(f, "delete autoscaler {name}"),
            Change::Pod { pod, life } => write!(f, "pod {pod} becomes {life:?}"),
            Change::Relabel { pod, label, value: Some(value) } => {
                write!(f, "pod {pod} gets the label {label}={value}")
            }
            Change::Relabel { pod, label, value: None } => {
                write!(f, "pod {pod} loses its label {label}")
            }
            Change::Orphan(pod) => write!(f, "pod {pod} becomes an orphan"),
            Change::DeletePod(pod) => write!(f, "delete pod {pod}"),
            Change::Terminate(pod) => write!(f, "delete pod {pod}, which does not go"),
            Change::Stray { pod, like } => {
                let requests = like.requests;
                write!(f, "create pod {pod} like those of {}, requests: {requests:?}", like.name)
            }
            Change::Usage { app, metric, samples } => write!(f, "{metric} of {app}: {samples}"),
            Change::Object { object, metric, amount } => {
                write!(f, "{metric} of {object}: {}", amount.as_deref().unwrap_or("gone"))
            }
            Change::External { metric, amounts: Some(amounts) } => {
                write!(f, "external {metric}: {amounts:?}")
            }
            Change::External { metric, amounts: None } => write!(f, "external {metric}: gone"),
            Change::Fault { api, fault: Some(fault) } => {
                write!(f, "{api:?} metrics API answers {fault}")
            }
            Change::Fault { api, fault: None } => write!(f, "{api:?} metrics API works again"),
        }
    }
}

fn answered(
    f: &mut fmt::Formatter<'_>,
    gadget: &str,
    verb: &str,
    answer: Option<&Canned>,
) -> fmt::Result {
    match answer {
        Some(answer) => write!(f, "{verb} of the scale of Gadget {gadget} answers {answer}"),
        None => write!(f, "{verb} of the scale of Gadget {gadget} answers as it should"),
    }
}

/// What happens at one moment; then both controllers come to rest and are compared.
#[derive(Clone, Debug)]
pub struct Step {
    pub changes: Vec<Change>,
    /// Whether the pods of workloads follow the sizes that the controllers have set before.
    pub pods_follow: bool,
}

impl From<Vec<Change>> for Step {
    fn from(changes: Vec<Change>) -> Step {
        Step { changes, pods_follow: true }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let changes: Vec<String> = self.changes.iter().map(ToString::to_string).collect();
        f.write_str(&changes.join("\n  "))?;
        if self.pods_follow { Ok(()) } else { f.write_str("\n  (pods stay as they are)") }
    }
}

/// What happens, in order. The first step makes the objects.
#[derive(Clone, Debug, Default)]
pub struct Timeline(pub Vec<Step>);
