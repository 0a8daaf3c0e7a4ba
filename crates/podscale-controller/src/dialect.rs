//! Kinds of autoscaler objects. A dialect reads a wire object into the model, renders a decision
//! back into its status, and says where its objects live in the API. Past this point nothing knows
//! which dialect an object is written in.
//!
//! A new dialect is one file in `podscale-api` (types and translation) and one file here.

mod beside;
mod built_in;
pub mod chpa;
mod condition;
pub mod hpa;
pub mod pod_autoscaler;
pub mod read;
mod resolver;
pub mod scaled_job;
pub mod scaled_object;

pub use beside::Beside;
pub use built_in::{built_in, with_triggers};
use condition::{condition, set, set_conflict};
use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Client;
use podscale_api::hpa::v2::HorizontalPodAutoscaler;
use podscale_api::meta::{FieldsWriter, ObjectMeta};
use podscale_api::translate::scaled_object::own_hpa::HpaSeen;
pub use podscale_api::translate::{CONFLICT_CONDITION, CONFLICT_REASON};
use podscale_client::call::segment;
use podscale_client::discovery::Resource;
use podscale_client::instrument::Instruments;
use podscale_client::watch::{Change, Presence, Watched, follow};
use podscale_core::pass::Outcome;
use podscale_core::{Autoscaler, Decision, Event, Snapshot, Status, StatusChange, Time};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

/// The reason of that condition where another autoscaler has the same target.
pub const TARGET_TAKEN: &str = "TargetTaken";

/// Whether an object is managed. Nothing is looked up for others.
pub type IsManaged = Arc<dyn Fn(&Managed) -> bool + Send + Sync>;

/// The condition of an object some of whose triggers' metadata has no effect, and its reason. KEDA says nothing then.
const WARNING_CONDITION: &str = "podscale.dev/Warning";
const WARNING_REASON: &str = "MetadataIgnored";

/// A kind of objects, and where they live in the API.
#[derive(Debug, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// Its name, for instance `HorizontalPodAutoscaler`.
    pub name: &'static str,
    /// Its group and version.
    pub api_version: &'static str,
    /// Its name in paths.
    pub plural: &'static str,
    /// Its name in errors, with the group.
    pub resource: &'static str,
    /// Whether the API server may not serve it: the CRD is missing, comes later or goes away.
    pub presence: Presence,
}

/// No two kinds share a resource.
impl PartialEq for Kind {
    fn eq(&self, other: &Kind) -> bool {
        self.resource == other.resource
    }
}

impl Hash for Kind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.resource.hash(state);
    }
}

impl Kind {
    /// The path of all objects of the kind.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/apis/{}/{}", self.api_version, self.plural)
    }

    /// The path of one object.
    #[must_use]
    pub fn object_path(&self, key: &Key) -> String {
        let (namespace, name) = (segment(&key.namespace), segment(&key.name));
        let Kind { api_version, plural, .. } = self;
        format!("/apis/{api_version}/namespaces/{namespace}/{plural}/{name}")
    }

    /// The path of one object's status.
    #[must_use]
    pub fn status_path(&self, key: &Key) -> String {
        format!("{}/status", self.object_path(key))
    }

    /// The component that events about decisions name: that of Kubernetes' own controller, which that of
    /// CHPAs took over, but for Podscale's own kind.
    #[must_use]
    pub fn component(&self) -> &'static str {
        if *self == pod_autoscaler::POD_AUTOSCALER {
            "pod-autoscaler"
        } else {
            "horizontal-pod-autoscaler"
        }
    }

    /// Whether it is one of Kubernetes itself, whose rules are those of upstream to the letter.
    #[must_use]
    pub fn is_native(&self) -> bool {
        self.presence == Presence::Always
    }
}

/// Which object: its kind, its namespace and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its kind.
    pub kind: &'static Kind,
}

/// The namespace and the name. Where objects of several kinds stand side by side, the kind is shown
/// beside it.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// One autoscaler object in the form that the controller works with.
#[derive(Clone, Debug)]
pub struct Managed {
    /// Which object it is.
    pub key: Key,
    /// What its spec means.
    pub model: Arc<Autoscaler>,
    /// The object as the API server has it.
    pub wire: Arc<dyn WireObject>,
}

impl Managed {
    /// The metadata of the object.
    #[must_use]
    pub fn metadata(&self) -> &ObjectMeta {
        self.wire.metadata()
    }

    /// Tells one object from another of the same name.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.wire.metadata().uid
    }
}

/// An object in the form of its dialect.
pub trait WireObject: fmt::Debug + Send + Sync {
    /// The metadata.
    fn metadata(&self) -> &ObjectMeta;

    /// The stored status, in the model's form.
    fn status(&self) -> Status;

    /// The object with another status.
    fn with_status(&self, status: NewStatus<'_>) -> Box<dyn WireObject>;

    /// Whether another version of the object has the same status, field by field.
    fn has_status_of(&self, other: &dyn WireObject) -> bool {
        self.as_hpa().status == other.as_hpa().status
    }

    /// The object with the status of another version of it.
    fn with_status_of(&self, other: &dyn WireObject) -> Box<dyn WireObject>;

    /// The object as it is sent to write its status.
    ///
    /// # Errors
    /// It cannot be put into JSON.
    fn to_body(&self) -> serde_json::Result<Vec<u8>>;

    /// The object as it is sent to be stored as a whole with its status, for a definition without a
    /// status subresource; `None` if its kind always has one.
    ///
    /// # Errors
    /// It cannot be put into JSON.
    fn to_whole_body(&self) -> serde_json::Result<Option<Vec<u8>>> {
        Ok(None)
    }

    /// Takes in the version that the API server gave it.
    fn set_resource_version(&mut self, version: String);

    /// The object in the form of an HPA.
    fn as_hpa(&self) -> Cow<'_, HorizontalPodAutoscaler>;

    /// How often it wants to be reconciled, if its spec says so.
    fn sync_period(&self) -> Option<Duration> {
        None
    }

    /// What its status becomes after a pass, where its kind compares that itself; `None` where the pass does.
    fn after(&self, _passed: After<'_>) -> Option<OwnStatus<'_>> {
        None
    }

    /// What is to be done for it besides deciding, if anything is.
    fn upkeep(&self) -> Option<Upkeep> {
        None
    }

    /// What is to become of the HPA beside it, if its kind may have one.
    fn beside(&self) -> Option<Beside> {
        None
    }

    /// The name of the HPA that it is to have beside it, which is not in its way.
    fn hpa_name(&self) -> Option<String> {
        None
    }

    /// The object in the form that Recordings hold, which says what it was if it was no HPA.
    fn recorded(&self) -> HorizontalPodAutoscaler {
        self.as_hpa().into_owned()
    }

    /// Whether the stored status shows something else than what the object does now, although the decision
    /// on it changes nothing there.
    fn is_status_stale(&self, _decision: &Decision, _snapshot: &Snapshot<'_>) -> bool {
        false
    }

    /// Whether the stored status, which says that another autoscaler is in the way, shows something else than
    /// what there is now: at least the size that the other one gives the target.
    fn is_conflict_stale(&self, _decision: &Decision, snapshot: &Snapshot<'_>) -> bool {
        let found = snapshot.scale.as_ref().ok().map(|scale| scale.spec_replicas);
        found.is_some_and(|found| found != snapshot.status.current_replicas)
    }

    /// The changes of its target's size that another autoscaler made before it took that one's place,
    /// as far as its status tells of them, the newest first.
    fn changes_carried_over(&self) -> Vec<SizeChange> {
        Vec::new()
    }
}

/// What a pass over an object has led to, once its target has its size.
#[derive(Clone, Copy)]
pub struct After<'a> {
    /// What it was decided on.
    pub snapshot: &'a Snapshot<'a>,
    /// What was decided, and what became of it.
    pub outcome: &'a Outcome,
    /// The resource of its target, if it was found.
    pub target: Option<&'a Resource>,
    /// What became of the HPA beside it, if there is one.
    pub hpa: Option<&'a HpaSeen>,
}

/// The status of an object whose kind compares it itself.
pub struct OwnStatus<'a> {
    /// Makes the object with it: most passes change nothing, and need none.
    pub object: Box<dyn FnOnce() -> Box<dyn WireObject> + Send + 'a>,
    /// How it differs from the stored one.
    pub change: StatusChange,
    /// The events of the pass, in the place of those of the decision.
    pub events: Vec<Event>,
}

/// What is to be done for an object besides deciding.
#[derive(Debug)]
pub enum Upkeep {
    /// Before its target is given a size, or its status is stored, its metadata is to be changed.
    Prepare {
        /// As a merge patch.
        patch: Value,
        /// The object as it is then, but for its version.
        object: Box<dyn WireObject>,
    },
    /// What it takes over from another object is stored right after it was made, and was not seen yet: it is to be read
    /// before it is decided.
    Read(fn(Value) -> serde_json::Result<Managed>),
    /// It is being deleted, and nothing is decided any more.
    Release {
        /// The size that its target is to get back before it goes.
        restore: Option<i32>,
        /// What lets it go, as a merge patch; nothing if it does not wait for us.
        patch: Option<Value>,
        /// What is reported once it is let go.
        events: Vec<Event>,
    },
}

/// Drops what nobody asks for: of who wrote what, only the writers of the status matter.
pub(crate) fn keep_status_writers(metadata: &mut ObjectMeta) {
    let writers = &mut metadata.writers;
    writers.retain(FieldsWriter::wrote_status);
    writers.shrink_to_fit();
}

/// A change of a target's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeChange {
    /// The size before.
    pub from: i32,
    /// The size after.
    pub to: i32,
    /// When.
    pub at: Time,
}

/// What a status is to say.
#[derive(Clone, Copy, Debug)]
pub enum NewStatus<'a> {
    /// What was decided.
    Decided {
        /// The decision.
        decision: &'a Decision,
        /// What it was made on.
        snapshot: &'a Snapshot<'a>,
    },
    /// What is stored, and that another controller or autoscaler is in the way.
    Conflict {
        /// In one word: [`CONFLICT_REASON`] or [`TARGET_TAKEN`].
        reason: &'static str,
        /// What to do about it.
        message: &'a str,
        /// How many replicas its target has, if that is known.
        replicas: Option<i32>,
        /// When it was found.
        now: Time,
    },
}

/// A kind of autoscaler objects, as the program knows it when it is built.
pub trait Dialect: Send + Sync + 'static {
    /// The form in which objects are read from lists and watches.
    type Wire: Watched + Send;

    /// Which kind.
    const KIND: &'static Kind;

    /// What an object means.
    fn managed(wire: Self::Wire) -> Managed;
}

/// A dialect whose objects can be watched beside those of others.
pub trait AnyDialect: Send + Sync {
    /// Which kind.
    fn kind(&self) -> &'static Kind;

    /// Follows all objects of the kind, for ever.
    fn follow<'a>(
        &'a self,
        client: &'a Client,
        instruments: &'a Instruments,
        apply: Box<dyn FnMut(Change<Managed>) + Send + 'a>,
    ) -> BoxFuture<'a, ()>;
}

impl<D: Dialect> AnyDialect for D {
    fn kind(&self) -> &'static Kind {
        D::KIND
    }

    fn follow<'a>(
        &'a self,
        client: &'a Client,
        instruments: &'a Instruments,
        mut apply: Box<dyn FnMut(Change<Managed>) + Send + 'a>,
    ) -> BoxFuture<'a, ()> {
        async move {
            let Kind { resource, presence, .. } = D::KIND;
            let (path, apply) =
                (D::KIND.path(), |change: Change<D::Wire>| apply(change.map(D::managed)));
            follow(client, &path, resource, *presence, instruments, apply).await;
        }
        .boxed()
    }
}
