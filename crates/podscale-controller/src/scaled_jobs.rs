//! KEDA's ScaledJobs: creates Jobs by event sources. Nothing is scaled here, so this is a loop of its own beside the
//! controller's: each object is polled in its own interval, and at once when it changes or a source says so. How many
//! Jobs are created is decided by the core's [`podscale_core::jobs`].

mod beside;
mod counts;
mod known;
mod poll;
mod schedule;
mod triggers;
mod write;

use crate::controller::manage::Manage;
use crate::controller::observer::Observer;
use crate::dialect::keep_status_writers;
use crate::triggers::Triggers;
use known::{Job, Jobs, Objects, Wire};
use kube::Client;
use podscale_api::keda::API_VERSION;
use podscale_api::keda::scaled_job::{Lean, PLURAL, RESOURCE};
use podscale_client::clock::Clock;
use podscale_client::election::Term;
use podscale_client::events;
use podscale_client::instrument::Instruments;
use podscale_client::watch::{Change, Presence, follow};
use poll::Poller;
use schedule::Schedule;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use write::Writer;

/// Where the Jobs of ScaledJobs are.
const JOBS: &str = "/apis/batch/v1/jobs?labelSelector=scaledjob.keda.sh%2Fname";
/// The component that events name.
const COMPONENT: &str = "podscale";
/// How long polls that are under way may take to end; wall-clock.
const SHUTDOWN_DEADLINE: Duration = Duration::from_secs(5);

/// What the loop works with.
pub struct Config {
    /// What looks up and polls triggers.
    pub triggers: Arc<Triggers>,
    /// Which objects are managed.
    pub manage: Manage,
    /// Whether to decide only, and to write nothing.
    pub dry_run: bool,
    /// The term in which this replica leads, while it does.
    pub leading: watch::Receiver<Option<Term>>,
    /// Counts what is watched.
    pub instruments: Instruments,
    /// Who hears of what is decided.
    pub observers: Vec<Arc<dyn Observer>>,
}

/// The running loop; it ends at once when this is dropped.
pub struct ScaledJobs {
    stop: watch::Sender<bool>,
    polls: JoinSet<()>,
    watches: JoinSet<()>,
    events: JoinSet<()>,
}

impl ScaledJobs {
    /// Begins to watch ScaledJobs and their Jobs and, while this replica leads, to poll them.
    #[must_use]
    pub fn start(client: &Client, clock: Clock, config: Config) -> ScaledJobs {
        let Config { triggers, manage, dry_run, leading, instruments, observers } = config;
        let (stop, stopped) = watch::channel(false);
        let (recorder, pending) = events::channel(COMPONENT);
        let (objects, jobs) = (Arc::new(Objects::default()), Arc::new(Jobs::default()));
        let mut watches = JoinSet::new();
        let (ours, watched) = (Arc::clone(&objects), Arc::clone(&instruments));
        watches.spawn(follow_objects(client.clone(), watched, manage, ours));
        watches.spawn(follow_jobs(client.clone(), instruments, Arc::clone(&jobs)));
        let mut events = JoinSet::new();
        events.spawn(events::write(client.clone(), clock, pending, stopped.clone()));
        let writer = Writer::new(client.clone(), recorder);
        let poller = Poller { triggers, jobs, writer, clock, dry_run, observers };
        let mut polls = JoinSet::new();
        polls.spawn(Schedule::new(Arc::new(poller), objects).run(leading, stopped));
        ScaledJobs { stop, polls, watches, events }
    }

    /// Begins no more polls, lets those end that are under way, and ends.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        self.watches.shutdown().await;
        // The last recorder goes with the polls, and so the task that writes events ends.
        for tasks in [&mut self.polls, &mut self.events] {
            let rest = async { while tasks.join_next().await.is_some() {} };
            let _ = tokio::time::timeout(SHUTDOWN_DEADLINE, rest).await;
            tasks.shutdown().await;
        }
    }
}

/// Follows ScaledJobs, for ever. One that is not managed does not exist here.
async fn follow_objects(
    client: Client,
    instruments: Instruments,
    manage: Manage,
    objects: Arc<Objects>,
) {
    let path = format!("/apis/{API_VERSION}/{PLURAL}");
    let apply = |change: Change<Wire>| {
        let mut change = change.map(|Wire(Lean(mut object))| {
            keep_status_writers(&mut object.metadata);
            object
        });
        if let Change::All(all) = &mut change {
            all.retain(|object| manage.takes(&object.metadata, false));
        }
        let change = match change {
            Change::Applied(object) if !manage.takes(&object.metadata, false) => {
                Change::Deleted(object)
            }
            other => other,
        };
        objects.apply(change);
    };
    follow(&client, &path, RESOURCE, Presence::Optional, &instruments, apply).await;
}

/// Follows the Jobs of ScaledJobs, for ever.
async fn follow_jobs(client: Client, instruments: Instruments, jobs: Arc<Jobs>) {
    let apply = |change: Change<Job>| jobs.apply(change);
    follow(&client, JOBS, "jobs.batch", Presence::Always, &instruments, apply).await;
}
