use super::*;
use podscale_api::recording::{AnyRecording, Line};
use serde_json::{Value, json};

/// Polls every ten seconds: the length of the queue, unfinished and pending Jobs, and how many are created.
fn polls(rows: &[(i64, (i32, i32), i32)]) -> Vec<Poll> {
    let poll =
        |(place, (queue, (unfinished, pending), created)): (i64, &(i64, (i32, i32), i32))| Poll {
            at: Time(place * 10_000_000),
            queue: *queue as f64,
            unfinished: *unfinished,
            pending: *pending,
            created: *created,
            follows: place > 0,
        };
    (0..).zip(rows).map(poll).collect()
}

/// A recording of a ScaledJob with this trigger.
fn recording(trigger: &Value, steps: Vec<Value>) -> JobsRecording {
    let value = json!({"apiVersion": "podscale.dev/v1alpha1", "kind": "Recording",
        "autoscaler": {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledJob",
            "metadata": {"name": "mail", "namespace": "shop"},
            "spec": {"jobTargetRef": {}, "pollingInterval": 10, "triggers": [trigger]}},
        "steps": steps});
    let line = Line { number: 1, bytes: value.to_string().into_bytes() };
    match line.parse_any().expect("a recording") {
        AnyRecording::Jobs(recording) => *recording,
        AnyRecording::Scale(_) => panic!("it is of a ScaledJob"),
    }
}

fn redis() -> Value {
    json!({"type": "redis", "metadata": {"address": "redis:6379", "listName": "mails", "listLength": "4"}})
}

/// The steps of polls like those above.
fn steps(rows: &[(i64, (i32, i32), i32)], more: &Value) -> Vec<Value> {
    let step = |(place, (queue, (unfinished, pending), created)): (
        i64,
        &(i64, (i32, i32), i32),
    )| {
        let mut step = json!({"time": format!("2000-01-01T00:{:02}:{:02}Z", place / 6, place % 6 * 10),
            "jobs": {"unfinished": unfinished, "pending": pending},
            "answers": [{"metric": "s0-redis-mails", "value": queue.to_string(), "perJob": "4",
                "active": *queue > 0}],
            "decision": {"create": created, "created": created}});
        for (field, value) in more.as_object().into_iter().flatten() {
            step[field] = value.clone();
        }
        step
    };
    (0..).zip(rows).map(step).collect()
}

fn recovered(recordings: &[JobsRecording]) -> Result<Recovered, DemandError> {
    let mut polls = Polls::default();
    recordings.iter().for_each(|recording| polls.add(recording));
    recover(&polls)
}

/// Three Jobs of four items each, which take 5 s for an item: 20 s while there is something to do.
const WORK: [(i64, (i32, i32), i32); 12] = [
    (0, (0, 0), 0),
    (30, (0, 0), 3),
    (30, (3, 3), 0),
    (27, (3, 0), 0),
    (21, (3, 0), 0),
    (18, (0, 0), 3),
    (15, (3, 0), 0),
    (9, (3, 0), 0),
    (6, (0, 0), 3),
    (4, (3, 0), 0),
    (0, (2, 0), 0),
    (0, (0, 0), 0),
];

#[test]
fn lives_of_jobs_follow_from_their_numbers() {
    let lives = Lives::of(&polls(&WORK), false);
    assert_eq!(lives.intervals.len(), WORK.len() - 1);
    // Three were pending at a poll; the others started within ten seconds.
    assert_eq!(lives.start_ups, [15.0, 15.0, 15.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0]);
    assert_eq!(lives.busy, [20.0; 6]);
    assert_eq!(lives.all.len(), 9);
    let worked: Vec<f64> = lives.intervals.iter().map(|i| i.worked_seconds).collect();
    assert_eq!(worked[..6], [0.0, 0.0, 15.0, 30.0, 15.0, 15.0]);
    // Jobs that come from nowhere, and a gap, end what is known of them.
    let mut odd = polls(&WORK);
    odd[6].unfinished = 9;
    assert_eq!(Lives::of(&odd, false).busy.len(), 3);
    let mut broken = polls(&WORK);
    broken[4].follows = false;
    assert_eq!(Lives::of(&broken, false).busy.len(), 3);
    // Within one interval a Job starts and ends after a third and two thirds of it.
    let short = Lives::of(&polls(&[(1, (0, 0), 1), (0, (0, 0), 0)]), false);
    let third = 10.0 / 3.0;
    assert!((short.start_ups[0] - third).abs() < 1e-9 && (short.quiet[0] - third).abs() < 1e-9);
}

#[test]
fn what_one_job_does_is_told_by_the_queue_or_by_the_target() {
    let fit = |rows: &[(i64, (i32, i32), i32)], target: u64| {
        let polls = polls(rows);
        let lives = Lives::of(&polls, false);
        let mut unknown = Vec::new();
        let fitted = Fitted::of(&polls, &lives, target, false, &mut unknown);
        fitted.map(|fitted| (fitted, unknown.join("\n")))
    };
    let (fitted, unknown) = fit(&WORK, 4).expect("Jobs ended");
    assert_eq!((fitted.work.items, fitted.item_seconds), (Some(4), 5.0));
    assert!(unknown.contains("which is taken for 4 items, as the target"), "{unknown}");
    assert!(unknown.contains("Jobs worked for 20 s"), "{unknown}");
    // The queue falls by about four for each Job, whatever the target is.
    let (fitted, unknown) = fit(&WORK, 20).expect("Jobs ended");
    assert!((3..=5).contains(&fitted.work.items.unwrap_or(0)), "{fitted:?}");
    assert!(unknown.contains("and not 20 items as the target"), "{unknown}");
    // All that came: thirty at once, and nothing after that.
    let (fitted, _) = fit(&WORK, 4).expect("Jobs ended");
    let came: f64 = fitted.demand.iter().map(|(_, rate)| rate * 10.0).sum();
    assert!((30.0..36.0).contains(&came), "{came}");
    assert!((fitted.demand[0].1 - 3.0).abs() < 1e-6, "{:?}", fitted.demand);
    // A queue that never falls tells nothing.
    let steady: Vec<(i64, (i32, i32), i32)> = WORK.iter().map(|row| (30, row.1, row.2)).collect();
    let (fitted, unknown) = fit(&steady, 7).expect("Jobs ended");
    assert_eq!(fitted.work.items, Some(7));
    assert!(unknown.contains("never fell for long enough"), "{unknown}");
    assert!(fit(&[(5, (1, 0), 0); 9], 4).is_none(), "no Job ended");
}

#[test]
fn recordings_are_put_together_and_what_they_tell_is_played() {
    let whole = steps(&WORK, &json!({}));
    let (first, second) = whole.split_at(5);
    let one = recovered(&[recording(&redis(), whole.clone())]).expect("a load");
    assert_eq!(one.sizes.len(), WORK.len());
    assert_eq!(one.sizes[1], (Span::seconds(10), 3));
    assert_eq!(one.known[1].created, 3);
    // Ten seconds for each Job that is there between two polls, and five for one that ends between them.
    assert!((one.hours * 3600.0 - 245.0).abs() < 1e-6, "{}", one.hours);
    let unknown = one.unknown.join("\n");
    for part in ["taken for 4 items", "waits for the next item", "how many pods a Job has"] {
        assert!(unknown.contains(part), "no {part:?} in {unknown}");
    }
    let played = one.replayed(&one.subject.plan).expect("a run").scores;
    assert_eq!(played.pods_started, 9);
    assert!((played.pod_hours - one.hours).abs() < 0.005, "{played:?}");
    let run = one.subject.run(&one.subject.plan).expect("a run").scores;
    assert!((6..=12).contains(&run.pods_started), "{run:?}");
    // Pieces come in any order.
    let pieces = [second, first].map(|steps| recording(&redis(), steps.to_vec()));
    let pieces = recovered(&pieces).expect("a load");
    assert_eq!((&pieces.sizes, &pieces.known), (&one.sizes, &one.known));
    assert_eq!(pieces.unknown, one.unknown);
    let mut late = whole;
    for (place, step) in late.iter_mut().enumerate().skip(9) {
        step["time"] = json!(format!("2000-01-01T00:09:{:02}Z", place * 5));
    }
    let gaps = recovered(&[recording(&redis(), late)]).expect("a load").unknown.join("\n");
    assert!(gaps.contains("nothing was recorded in 1 gaps of"), "{gaps}");
}

#[test]
fn what_tells_nothing_is_left_out_by_name() {
    let cron = json!({"type": "cron", "metadata": {"timezone": "Etc/UTC", "start": "0 8 * * *",
        "end": "0 9 * * *", "desiredReplicas": "2"}});
    let cpu = json!({"type": "cpu", "metadata": {"value": "60", "type": "Utilization"}});
    let told = json!({"type": "external", "metadata": {"scalerAddress": "scaler:9090"}});
    let all = || steps(&WORK, &json!({}));
    let no_queue =
        "ScaledJob shop/mail: no trigger tells how much there was to do: the length of a queue";
    let mut mixed = recording(&redis(), all());
    mixed.autoscaler.spec.triggers.push(serde_json::from_value(cron.clone()).expect("a trigger"));
    let waiting: Vec<(i64, (i32, i32), i32)> = WORK.iter().map(|_| (5, (2, 0), 0)).collect();
    for (recording, expected) in [
        (recording(&cron, all()), no_queue),
        (recording(&told, all()), no_queue),
        (recording(&cpu, all()), no_queue),
        (mixed, "ScaledJob shop/mail: triggers[1] (cron) is a schedule"),
        (
            recording(&redis(), all()[..4].to_vec()),
            "ScaledJob shop/mail: 4 steps are too few to recover a load from",
        ),
        (
            recording(&redis(), steps(&WORK, &json!({"withheld": "dryRun"}))),
            "ScaledJob shop/mail: its Jobs were created by another controller",
        ),
        (
            recording(&redis(), steps(&waiting, &json!({}))),
            "ScaledJob shop/mail: no Job was seen from its beginning to its end",
        ),
        (recording(&redis(), steps(&WORK, &json!({"answers": []}))), no_queue),
    ] {
        let error = recovered(&[recording]).expect_err(expected).to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn pauses_and_polls_without_an_answer_are_said_or_passed_over() {
    let mut paused = steps(&WORK, &json!({}));
    paused[6]["paused"] = json!(true);
    let found = recovered(&[recording(&redis(), paused)]).expect("a load");
    let unknown = found.unknown.join("\n");
    assert!(unknown.contains("in 1 steps it was paused or could not be used"), "{unknown}");
    let mut silent = steps(&WORK, &json!({}));
    silent[4]["answers"][0] = json!({"metric": "s0-redis-mails", "error": "no route"});
    let found = recovered(&[recording(&redis(), silent)]).expect("a load");
    assert!(!found.unknown.join("\n").contains("gaps"), "{:?}", found.unknown);
    assert_eq!((found.sizes.len(), found.known.len()), (WORK.len(), WORK.len() - 1));
}

#[test]
fn the_jobs_of_a_changed_object_stay_what_they_were() {
    let found = recovered(&[recording(&redis(), steps(&WORK, &json!({})))]).expect("a load");
    let object = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledJob",
        "metadata": {"name": "mail", "namespace": "shop"},
        "spec": {"jobTargetRef": {"parallelism": 5, "template": {}}, "maxReplicaCount": 2,
            "triggers": [redis()]}});
    let changed = found.subject.with_object(&object, &[]).expect("a ScaledJob");
    let work = |subject: &Subject| match &subject.object {
        Tried::Jobs(jobs) => jobs.policy.work,
        Tried::Scale(_) => panic!("it is a ScaledJob"),
    };
    assert_eq!(work(&changed), work(&found.subject));
}
