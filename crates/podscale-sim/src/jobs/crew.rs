//! The Jobs that are not finished: they wait for a node, start, take items one after the other and end. Times are seconds
//! from the start of a run; each delay is drawn once per Job, as for pods that serve.

use super::queue::Queue;
use super::work::JobWork;
use crate::environment::{Delay, Environment};
use crate::world::{Nodes, READINESS, START_UP};
use podscale_core::Time;
use podscale_core::jobs::JobCounts;

/// One Job.
#[derive(Clone, Debug)]
struct Job {
    id: u64,
    /// When it was created.
    created: f64,
    /// When its pods begin to run; not known while no node has room for it.
    starts: Option<f64>,
    /// When its pods are ready.
    ready: f64,
    /// When it is done with what it has taken.
    free: f64,
    /// How many items it may still take.
    left: u64,
    /// When it ended.
    ended: Option<f64>,
}

/// What Jobs did with items that came at the same time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Taken {
    pub(super) items: u64,
    /// How long the first of them waited, and how much longer each of the next.
    pub(super) waited: f64,
    pub(super) apart: f64,
}

/// All Jobs that are not finished.
pub(super) struct Crew {
    jobs: Vec<Job>,
    work: JobWork,
    /// How long a Job takes for one item.
    item_seconds: f64,
    nodes: Nodes,
    start_up: Delay,
    readiness: Delay,
    seed: u64,
    created: u64,
}

impl Crew {
    /// Nobody, where a Job does so many items a second.
    pub(super) fn new(environment: &Environment, seed: u64, work: JobWork, rate: f64) -> Crew {
        Crew {
            jobs: Vec::new(),
            work,
            item_seconds: 1.0 / rate,
            nodes: Nodes::new(environment.nodes, seed),
            start_up: environment.start_up,
            readiness: environment.readiness,
            seed,
            created: 0,
        }
    }

    /// Takes over Jobs that are there at the beginning; those that work have done different parts of what they do.
    pub(super) fn inherit(&mut self, counts: JobCounts) {
        let working = counts.running.saturating_sub(counts.pending).max(0);
        self.create(working, 0.0);
        let places = f64::from(working) + 1.0;
        for (place, job) in (1..).zip(&mut self.jobs) {
            let done = f64::from(place) / places;
            let since = self.work.run_seconds.unwrap_or(0.0) * done;
            (job.starts, job.ready, job.free) = (Some(-since), 0.0, 0.0);
            // The cast saturates.
            let left = self.work.items.map(|items| (items as f64 * (1.0 - done)).ceil() as u64);
            job.left = left.unwrap_or(u64::MAX).max(1);
        }
        self.create(counts.pending.min(counts.running), 0.0);
    }

    /// How many were ever created.
    pub(super) fn created(&self) -> u64 {
        self.created
    }

    /// Those that there are now; a Job counts as pending until its pods run, or until they are ready.
    pub(super) fn counts(&self, now: f64, until_ready: bool) -> JobCounts {
        let is_pending = |job: &&Job| {
            let begun = job.starts.filter(|starts| *starts <= now);
            begun.is_none() || until_ready && job.ready > now
        };
        let narrow = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
        let pending = self.jobs.iter().filter(is_pending).count();
        JobCounts { running: narrow(self.jobs.len()), pending: narrow(pending) }
    }

    /// How many items Jobs have taken and are not done with.
    pub(super) fn in_hand(&self, now: f64) -> u64 {
        let has_one = |job: &&Job| job.starts.is_some_and(|s| s <= now) && job.free > now;
        self.jobs.iter().filter(has_one).count() as u64
    }

    /// How many work.
    pub(super) fn working(&self, now: f64) -> usize {
        self.jobs.iter().filter(|job| job.starts.is_some_and(|starts| starts <= now)).count()
    }

    /// Creates so many.
    pub(super) fn create(&mut self, count: i32, at: f64) {
        for _ in 0..count {
            self.jobs.push(Job {
                id: self.created,
                created: at,
                starts: None,
                ready: f64::INFINITY,
                free: f64::INFINITY,
                left: self.work.items.unwrap_or(u64::MAX),
                ended: None,
            });
            self.created += 1;
        }
    }

    /// Gives Jobs that wait for nodes their places, as far as there is room.
    pub(super) fn place(&mut self, now: f64, at: Time) {
        let waiting = self.jobs.iter().filter(|job| job.starts.is_none()).count();
        let pods = self.work.pods.max(1) as usize;
        let placed = (self.jobs.len() - waiting).saturating_mul(pods);
        let room = self.nodes.room(placed, waiting.saturating_mul(pods), at) / pods;
        let unplaced = self.jobs.iter_mut().filter(|job| job.starts.is_none());
        for job in unplaced.take(room) {
            let seconds =
                |delay: &Delay, purpose| delay.draw(self.seed, job.id, purpose).0 as f64 / 1e6;
            let starts = now.max(job.created) + seconds(&self.start_up, START_UP);
            job.starts = Some(starts);
            job.ready = starts + seconds(&self.readiness, READINESS);
            job.free = starts;
        }
    }

    /// Lets all work from one time to another; gives for how many seconds pods were there, all together. `taken` hears
    /// of what is taken.
    pub(super) fn work(
        &mut self,
        queue: &mut Queue,
        (from, to): (f64, f64),
        mut taken: impl FnMut(Taken),
    ) -> f64 {
        let (work, item_seconds) = (self.work, self.item_seconds);
        let mut job_seconds = 0.0;
        for job in &mut self.jobs {
            job.work(queue, &work, item_seconds, (from, to), &mut taken);
            let there = job.ended.unwrap_or(to) - job.created.max(from);
            job_seconds += there.max(0.0);
        }
        self.jobs.retain(|job| job.ended.is_none());
        job_seconds * f64::from(self.work.pods.max(1))
    }
}

impl Job {
    /// Takes what it can in this time, one item after the other, and ends if it is done.
    fn work(
        &mut self,
        queue: &mut Queue,
        work: &JobWork,
        item_seconds: f64,
        (from, to): (f64, f64),
        taken: &mut impl FnMut(Taken),
    ) {
        let Some(starts) = self.starts.filter(|starts| *starts < to) else { return };
        let stops = work.run_seconds.map_or(f64::INFINITY, |seconds| starts + seconds);
        loop {
            // Done with all it may do, or with all it has begun in its time.
            if self.left == 0 || self.free >= stops {
                self.end_by(self.free, to);
                return;
            }
            if self.free >= to {
                return;
            }
            let gives_up = (self.free + work.idle_seconds).min(stops);
            let next = queue.first().filter(|next| next.came < to && next.came <= gives_up);
            let Some(next) = next else {
                self.end_by(gives_up, to);
                return;
            };
            // What waits cannot be taken in the past, where nothing is known of it any more.
            let at = self.free.max(next.came).max(from);
            if at >= stops {
                self.end_by(stops, to);
                return;
            }
            let fitting = ((to.min(stops) - at) / item_seconds).ceil();
            // The cast saturates.
            let items = (fitting as u64).max(1).min(next.items).min(self.left);
            queue.take(items);
            taken(Taken { items, waited: at - next.came, apart: item_seconds });
            self.left = self.left.saturating_sub(items);
            self.free = at + item_seconds * items as f64;
        }
    }

    fn end_by(&mut self, at: f64, to: f64) {
        if at < to {
            self.ended = Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORK: JobWork = JobWork {
        items: Some(3),
        run_seconds: None,
        idle_seconds: 0.0,
        counts_taken: true,
        pods: 1,
    };

    /// Jobs that start within 4 s and take 2 s for an item.
    fn crew(work: JobWork, count: i32) -> Crew {
        let environment = Environment {
            start_up: Delay::Fixed { seconds: 4.0 },
            readiness: Delay::Fixed { seconds: 3.0 },
            ..Environment::default()
        };
        let mut crew = Crew::new(&environment, 1, work, 0.5);
        crew.create(count, 0.0);
        crew.place(0.0, Time(0));
        crew
    }

    /// Second by second: when items were taken, as they came at once, and for how long pods were there.
    fn course(crew: &mut Crew, items: u64, seconds: u32) -> (Vec<f64>, f64) {
        let (mut queue, mut waits, mut there) = (Queue::default(), Vec::new(), 0.0);
        queue.add(0.0, items, u64::MAX);
        for second in 0..seconds {
            let from = f64::from(second);
            there += crew.work(&mut queue, (from, from + 1.0), |taken| {
                waits.extend((0..taken.items).map(|n| taken.waited + taken.apart * n as f64));
            });
        }
        (waits, there)
    }

    #[test]
    fn a_job_starts_does_its_part_and_ends() {
        let mut one = crew(WORK, 1);
        assert_eq!(one.counts(3.9, false), JobCounts { running: 1, pending: 1 });
        assert_eq!(one.counts(4.0, false), JobCounts { running: 1, pending: 0 });
        assert_eq!(one.counts(6.9, true), JobCounts { running: 1, pending: 1 });
        assert_eq!((one.in_hand(3.0), one.working(3.0), one.working(4.0)), (0, 0, 1));
        assert_eq!(course(&mut one, 5, 7), (vec![4.0, 6.0], 7.0));
        assert_eq!(one.in_hand(7.0), 1);
        let (waits, there) = course(&mut crew(WORK, 2), 5, 20);
        assert_eq!(waits, [4.0, 4.0, 6.0, 6.0, 8.0]);
        // One ends after three items, at 10 s; the other finds nothing at 8 s.
        assert_eq!(there, 10.0 + 8.0);
    }

    #[test]
    fn jobs_that_are_there_already_do_the_rest_of_their_part() {
        let mut crew = crew(WORK, 0);
        crew.inherit(JobCounts { running: 3, pending: 1 });
        assert_eq!(crew.counts(0.0, false), JobCounts { running: 3, pending: 1 });
        assert_eq!((crew.working(0.0), crew.created()), (2, 3));
        // Of three items each, one has two left and the other one; the third starts with all of them.
        crew.place(0.0, Time(0));
        assert_eq!(course(&mut crew, 9, 20).0, [0.0, 0.0, 2.0, 4.0, 6.0, 8.0]);
    }

    #[test]
    fn a_job_waits_for_more_and_works_for_its_time() {
        let patient = JobWork { idle_seconds: 5.0, ..WORK };
        assert_eq!(course(&mut crew(patient, 1), 1, 30), (vec![4.0], 6.0 + 5.0));
        // An item that is begun is finished.
        let timed = JobWork { items: None, run_seconds: Some(5.0), ..patient };
        assert_eq!(course(&mut crew(timed, 1), 9, 30), (vec![4.0, 6.0, 8.0], 10.0));
        let staying = JobWork { idle_seconds: f64::INFINITY, ..timed };
        assert_eq!(course(&mut crew(staying, 1), 0, 30), (vec![], 9.0));
        let two_pods = JobWork { pods: 2, ..staying };
        assert_eq!(course(&mut crew(two_pods, 1), 0, 30), (vec![], 18.0));
    }

    #[test]
    fn many_items_are_taken_within_a_second() {
        let mut quick =
            Crew::new(&Environment::default(), 1, JobWork { items: None, ..WORK }, 50.0);
        quick.create(1, 0.0);
        quick.place(0.0, Time(0));
        let (waits, there) = course(&mut quick, 200, 60);
        assert_eq!(waits.len(), 200);
        assert!(waits.is_sorted());
        let starts = waits[0];
        assert!((there - starts - 4.0).abs() < 1e-9, "200 items at 50 a second: {there}");
    }
}
