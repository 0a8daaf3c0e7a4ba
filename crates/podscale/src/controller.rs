//! The controller: watches autoscalers and pods, and takes a look at each autoscaler once in every
//! period, and at once when it changed.

pub mod contest;
pub mod histories;
pub mod manage;
pub mod observer;
pub mod overrides;
pub mod pass;
pub mod refresh;
pub mod rivals;
pub mod schedule;
pub mod shadow;
mod turns;

use crate::act::{Actor, COMPONENT};
use crate::clock::Clock;
use crate::election::Term;
use crate::events;
use crate::keep::{self, Keeper};
use crate::meters::Meters;
use crate::readiness::Readiness;
use crate::scrape::Scraper;
use crate::settings::span;
use crate::watch::kinds::Kinds;
use crate::watch::targets::Targets;
use crate::watch::world::{Key, World};
use crate::watch::{Change, follow};
use contest::Contests;
use kube::Client;
use manage::Manage;
use observer::Observer;
use overrides::Owns;
use pass::{FRESH_PART, HANDS, Memory, Passes};
use podscale_api::hpa::v2::Lean;
use podscale_core::Settings;
use refresh::RefreshRate;
use schedule::Schedule;
use shadow::Shadows;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use turns::Turns;

/// How the controller works.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// How often each autoscaler is looked at.
    pub period: Duration,
    /// How many are looked at at the same time.
    pub concurrency: usize,
    /// What is the same for all autoscalers that do not say otherwise.
    pub settings: Settings,
    /// Which autoscalers are looked after.
    pub manage: Manage,
    /// Whether to decide only, write nothing, and compare with what another controller writes.
    pub dry_run: bool,
    /// How often statuses are written for their values alone.
    pub refresh_rate: RefreshRate,
}

/// No value of a metric is used by another look after this time.
const FRESH_AT_MOST: Duration = Duration::from_secs(4);

impl Default for Config {
    fn default() -> Config {
        Config {
            period: Duration::from_secs(15),
            concurrency: 4096,
            settings: Settings::default(),
            manage: Manage::default(),
            dry_run: false,
            refresh_rate: RefreshRate::default(),
        }
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

/// The part of this replica among several.
pub struct Role {
    /// The term in which it leads, while it does.
    pub leading: watch::Receiver<Option<Term>>,
    /// Where the leader's memory is kept for the next one, if anywhere.
    pub keep: Option<keep::Config>,
}

impl Role {
    /// The only one there is; it keeps nothing.
    #[must_use]
    pub fn alone() -> Role {
        Role { leading: watch::channel(Some(Term::Alone)).1, keep: None }
    }
}

/// What must be known before anything is decided.
const PODS: &str = "the list of pods";
const AUTOSCALERS: &str = "the list of autoscalers";

/// A running controller; it ends at once when this is dropped.
pub struct Controller {
    stop: watch::Sender<bool>,
    turns: JoinSet<()>,
    events: JoinSet<()>,
    watches: JoinSet<()>,
}

impl Controller {
    /// Begins to watch and, once everything is known and this replica leads, to decide.
    #[must_use]
    pub fn start(
        client: &Client,
        clock: Clock,
        config: Config,
        watchers: Watchers,
        role: Role,
    ) -> Controller {
        let Watchers { mut observers, meters, readiness } = watchers;
        observers.push(Arc::new(meters.clone()));
        [PODS, AUTOSCALERS].into_iter().for_each(|what| readiness.needs(what));
        let (stop, stopped) = watch::channel(false);
        let (recorder, happenings) = events::channel(COMPONENT);
        let kinds = Kinds::new(client.clone(), clock);
        let world = Arc::new(World::default());
        let targets = Arc::new(Targets::new(client.clone(), meters.clone(), readiness.clone()));
        let passes = Arc::new(Passes {
            world: Arc::clone(&world),
            scraper: Scraper::new(client.clone(), clock, kinds.clone(), meters.clone()),
            actor: Actor::new(client.clone(), clock, kinds, Arc::clone(&targets), recorder),
            clock,
            settings: config.settings,
            owns: Owns::default(),
            contests: Contests::default(),
            shadows: config.dry_run.then(Shadows::default),
            period: span(config.period),
            meters: meters.clone(),
            observers,
            memory: Memory::default(),
            fresh: (config.period / FRESH_PART).min(FRESH_AT_MOST),
            refresh_rate: config.refresh_rate,
            hands: Semaphore::new(HANDS),
        });
        let schedule = Arc::new(Schedule::new(clock, config.period));
        show_sizes(&meters, &world, &schedule, &targets);
        let (pods_known, pods_synced) = watch::channel(false);
        let (mut turns, mut events) = (JoinSet::new(), JoinSet::new());
        let mut watches = JoinSet::new();
        events.spawn(events::write(client.clone(), clock, happenings, stopped.clone()));
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
        let (counting, manage, named) = (meters.clone(), config.manage, targets);
        watches.spawn(async move {
            let path = "/apis/autoscaling/v2/horizontalpodautoscalers";
            let (passes, schedule) = theirs;
            let resource = "horizontalpodautoscalers.autoscaling";
            follow(&own, path, resource, &counting, |change| {
                let change = manage.filter(change.map(|Lean(hpa)| hpa));
                for (key, period) in passes.owns.take(&change, &passes.settings) {
                    schedule.pace(&key, period);
                    schedule.hurry(key);
                }
                if let Change::Applied(hpa) = &change
                    && passes.saw(hpa)
                {
                    schedule.hurry(Key::of(hpa));
                }
                if let Change::All(all) = &change {
                    named.expect(all.iter().map(|hpa| &hpa.spec.scale_target_ref));
                }
                let called = passes.world.take_autoscalers(change);
                readiness.has(AUTOSCALERS);
                for key in called.gone {
                    schedule.forget(&key);
                    passes.forget(&key);
                }
                called.due.into_iter().for_each(|key| schedule.hurry(key));
                called.known.into_iter().for_each(|key| schedule.add(key));
                counting.looks_after(schedule.len());
            })
            .await;
        });
        let histories = Arc::clone(&passes.memory.histories);
        let keeper = role.keep.map(|keep| Keeper::new(client.clone(), clock, keep, histories));
        let all = Turns {
            passes,
            schedule,
            meters,
            concurrency: config.concurrency,
            keeper,
            synced: pods_synced,
            leading: role.leading,
            stopped,
        };
        turns.spawn(all.run());
        Controller { stop, turns, events, watches }
    }

    /// Starts nothing new, lets what has begun come to its end, and ends.
    pub async fn stop(self) {
        self.hand_over(std::future::ready(())).await;
    }

    /// Ends like [`Controller::stop`]; `release`, which lets another replica lead, is done as soon as
    /// this one writes nothing any more that another could contradict.
    pub async fn hand_over(mut self, release: impl Future<Output = ()>) {
        self.stop.send_replace(true);
        // The last recorder goes with them and the turns, and so the task that writes events ends.
        self.watches.shutdown().await;
        finish(&mut self.turns).await;
        release.await;
        finish(&mut self.events).await;
    }
}

/// Waits for tasks; whatever still waits for an answer after a while is cut off.
async fn finish(tasks: &mut JoinSet<()>) {
    let rest = async { while tasks.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(PATIENCE, rest).await;
    tasks.shutdown().await;
}

/// Sizes are asked for by whoever looks; what has ended by then has none.
fn show_sizes(
    meters: &Meters,
    world: &Arc<World>,
    schedule: &Arc<Schedule>,
    targets: &Arc<Targets>,
) {
    let known = Arc::downgrade(schedule);
    meters.show_queue(move || known.upgrade().map_or(0, |schedule| schedule.due()));
    let known = Arc::downgrade(world);
    meters.show_cache("autoscalers", move || known.upgrade().map_or(0, |w| w.count_autoscalers()));
    let known = Arc::downgrade(world);
    meters.show_cache("pods", move || known.upgrade().map_or(0, |w| w.count_pods()));
    let known = Arc::downgrade(targets);
    meters.show_cache("targets", move || known.upgrade().map_or(0, |targets| targets.len()));
}

/// How long the end of what has begun is waited for; time of the wall.
const PATIENCE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
