//! The controller: watches autoscalers and pods, and takes a look at each autoscaler once in every
//! period, and at once when it changed.

pub mod observer;
pub mod pass;
pub mod schedule;

use crate::act::{Actor, COMPONENT};
use crate::clock::Clock;
use crate::events;
use crate::meters::Meters;
use crate::readiness::Readiness;
use crate::scrape::Scraper;
use crate::watch::follow;
use crate::watch::kinds::Kinds;
use crate::watch::world::{Key, World};
use kube::Client;
use observer::Observer;
use pass::{Memory, Passes};
use podscale_core::Settings;
use schedule::Schedule;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// How the controller works.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// How often each autoscaler is looked at.
    pub period: Duration,
    /// How many are looked at at the same time.
    pub concurrency: usize,
    /// What is the same for all autoscalers.
    pub settings: Settings,
}

impl Default for Config {
    fn default() -> Config {
        Config { period: Duration::from_secs(15), concurrency: 64, settings: Settings::default() }
    }
}

/// Who is told of what the controller does.
#[derive(Clone, Default)]
pub struct Watchers {
    /// Are told of every decision.
    pub observers: Vec<Arc<dyn Observer>>,
    /// Count and measure.
    pub meters: Meters,
    /// Is told when everything is known that deciding needs.
    pub readiness: Readiness,
}

/// What must be known before anything is decided.
const PODS: &str = "the list of pods";
const AUTOSCALERS: &str = "the list of autoscalers";

/// A running controller; it ends at once when this is dropped.
pub struct Controller {
    stop: watch::Sender<bool>,
    work: JoinSet<()>,
    watches: JoinSet<()>,
}

impl Controller {
    /// Begins to watch and, once everything is known, to decide.
    #[must_use]
    pub fn start(client: &Client, clock: Clock, config: Config, watchers: Watchers) -> Controller {
        let Watchers { mut observers, meters, readiness } = watchers;
        observers.push(Arc::new(meters.clone()));
        [PODS, AUTOSCALERS].into_iter().for_each(|what| readiness.needs(what));
        let (stop, stopped) = watch::channel(false);
        let (recorder, happenings) = events::channel(COMPONENT);
        let kinds = Kinds::new(client.clone(), clock);
        let world = Arc::new(World::default());
        let passes = Arc::new(Passes {
            world: Arc::clone(&world),
            scraper: Scraper::new(client.clone(), clock, kinds.clone(), meters.clone()),
            actor: Actor::new(client.clone(), clock, kinds, recorder),
            clock,
            settings: config.settings,
            observers,
            memory: Memory::default(),
        });
        let schedule = Arc::new(Schedule::new(clock, config.period));
        show_sizes(&meters, &world, &schedule);
        let (pods_known, pods_synced) = watch::channel(false);
        let (mut work, mut watches) = (JoinSet::new(), JoinSet::new());
        work.spawn(events::write(client.clone(), clock, happenings, stopped.clone()));
        let (own, of_pods) = (client.clone(), world);
        let (counting, ready) = (meters.clone(), readiness.clone());
        watches.spawn(async move {
            follow(&own, "/api/v1/pods", "pods", &counting, |change| {
                of_pods.take_pods(change);
                ready.has(PODS);
                pods_known.send_replace(true);
            })
            .await;
        });
        let (own, theirs) = (client.clone(), (Arc::clone(&passes), Arc::clone(&schedule)));
        let counting = meters.clone();
        watches.spawn(async move {
            let path = "/apis/autoscaling/v2/horizontalpodautoscalers";
            let (passes, schedule) = theirs;
            let resource = "horizontalpodautoscalers.autoscaling";
            follow(&own, path, resource, &counting, |change| {
                let called = passes.world.take_autoscalers(change);
                readiness.has(AUTOSCALERS);
                for key in called.gone {
                    schedule.forget(&key);
                    passes.memory.forget(&key);
                    passes.observers.iter().for_each(|observer| observer.gone(&key));
                }
                called.due.into_iter().for_each(|key| schedule.hurry(key));
                counting.looks_after(schedule.len());
            })
            .await;
        });
        work.spawn(run(passes, schedule, meters, config.concurrency, pods_synced, stopped));
        Controller { stop, work, watches }
    }

    /// Starts nothing new, lets what has begun come to its end, and ends.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        // The last recorder goes with them, and with it the task that writes events.
        self.watches.shutdown().await;
        let rest = async { while self.work.join_next().await.is_some() {} };
        // Whatever still waits for an answer then is cut off.
        let _ = tokio::time::timeout(PATIENCE, rest).await;
        self.work.shutdown().await;
    }
}

/// Sizes are asked for by whoever looks; what has ended by then has none.
fn show_sizes(meters: &Meters, world: &Arc<World>, schedule: &Arc<Schedule>) {
    let known = Arc::downgrade(schedule);
    meters.show_queue(move || known.upgrade().map_or(0, |schedule| schedule.due()));
    let known = Arc::downgrade(world);
    meters.show_cache("autoscalers", move || known.upgrade().map_or(0, |w| w.sizes().0));
    let known = Arc::downgrade(world);
    meters.show_cache("pods", move || known.upgrade().map_or(0, |w| w.sizes().1));
}

/// How long the end of what has begun is waited for; time of the wall.
const PATIENCE: Duration = Duration::from_secs(5);

/// Looks at whatever is due, many at a time, until told to stop. A slow object holds one place of
/// many, and a call has a deadline, so none can hold up the others for long.
async fn run(
    passes: Arc<Passes>,
    schedule: Arc<Schedule>,
    meters: Meters,
    concurrency: usize,
    mut pods_synced: watch::Receiver<bool>,
    mut stopped: watch::Receiver<bool>,
) {
    // Without all pods known, healthy targets would look empty.
    tokio::select! {
        biased;
        _ = stopped.wait_for(|stop| *stop) => return,
        synced = pods_synced.wait_for(|known| *known) => if synced.is_err() { return },
    }
    let places = Arc::new(Semaphore::new(concurrency.max(1)));
    let mut running = JoinSet::new();
    loop {
        let place = Arc::clone(&places).acquire_owned();
        let due = async {
            let place = place.await;
            (place, schedule.next().await)
        };
        let (place, (key, late)) = tokio::select! {
            biased;
            _ = stopped.wait_for(|stop| *stop) => break,
            due = due => due,
        };
        meters.due(late);
        tracing::trace!(autoscaler = %key, ?late, "due");
        let (passes, schedule) = (Arc::clone(&passes), Arc::clone(&schedule));
        running.spawn(async move {
            let _place = place;
            let turn = Turn { schedule, key };
            passes.pass(&turn.key).await;
        });
        // Keeps the set small; whoever panicked has been reported by the runtime.
        while running.try_join_next().is_some() {}
    }
    while running.join_next().await.is_some() {}
}

/// An autoscaler's turn: however it ends, the next one comes.
struct Turn {
    schedule: Arc<Schedule>,
    key: Key,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.schedule.done(&self.key);
    }
}
