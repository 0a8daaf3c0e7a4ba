//! Plans of Jobs as data.

use super::super::tally::FINALIZER;
use super::*;
use serde_json::{Value, json};

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn ago(seconds: &str) -> Value {
    let seconds = SignedDuration::from_secs(seconds.parse().unwrap());
    json!((now() - seconds).to_string())
}

/// A Job from words: `parallelism=2 completions=5 limit=1 deadline=60 suspend started=90 succeeded=1`.
fn job(words: &str) -> Job {
    let mut json = json!({"metadata": {"name": "j", "namespace": "a", "uid": "o"},
        "spec": {"template": {"spec": {"containers": [], "restartPolicy": "Never"}}}, "status": {}});
    for word in words.split(' ').filter(|word| !word.is_empty()) {
        let number = |text: &str| json!(text.parse::<i32>().unwrap());
        match word.split_once('=') {
            Some(("limit", n)) => json["spec"]["backoffLimit"] = number(n),
            Some(("deadline", n)) => json["spec"]["activeDeadlineSeconds"] = number(n),
            Some(("started", n)) => json["status"]["startTime"] = ago(n),
            Some((count @ ("succeeded" | "failed"), n)) => json["status"][count] = number(n),
            Some(("restart", policy)) => {
                json["spec"]["template"]["spec"]["restartPolicy"] = json!(policy);
            }
            Some(("replace", policy)) => json["spec"]["podReplacementPolicy"] = json!(policy),
            Some(("uncounted", uid)) => {
                json["status"]["uncountedTerminatedPods"] = json!({"succeeded": [uid]});
            }
            Some(("was", kind)) => {
                json["status"]["conditions"] = json!([{"type": kind, "status": "True"}]);
            }
            Some((field, n)) => json["spec"][field] = number(n),
            None if word == "suspend" => json["spec"]["suspend"] = json!(true),
            None if word == "indexed" => json["spec"]["completionMode"] = json!("Indexed"),
            None => json["spec"][word] = json!({"rules": []}),
        }
    }
    serde_json::from_value(json).unwrap()
}

/// Pods from words such as `a b:Succeeded c:Failed,20 d:ends e:Succeeded,free f:restarts`; a number is the seconds
/// since it ended, and one that is free has been counted.
fn pods(words: &str) -> Vec<Arc<Pod>> {
    let words = words.split(' ').filter(|word| !word.is_empty());
    let pod = |word: &str| -> Arc<Pod> {
        let (name, traits) = word.split_once(':').unwrap_or((word, "Running"));
        let mut json = json!({"metadata": {"name": name, "uid": name, "finalizers": [FINALIZER]},
            "status": {"phase": "Running"}});
        for word in traits.split(',') {
            match word {
                "ends" => json["metadata"]["deletionTimestamp"] = ago("0"),
                "gone" => {
                    json["metadata"]["deletionTimestamp"] = ago("0");
                    json["metadata"]["deletionGracePeriodSeconds"] = json!(0);
                }
                "free" => json["metadata"]["finalizers"] = json!([]),
                "restarts" => {
                    json["status"]["containerStatuses"] = json!([{"name": "c", "restartCount": 3}]);
                }
                seconds if seconds.parse::<i32>().is_ok() => {
                    json["status"]["conditions"] = json!([{"type": "Ready", "status": "False",
                        "lastTransitionTime": ago(seconds)}]);
                }
                phase => json["status"]["phase"] = json!(phase),
            }
        }
        Arc::new(serde_json::from_value(json).unwrap())
    };
    words.map(pod).collect()
}

/// What a plan does, in words.
fn text_of(plan: &Plan) -> String {
    let names = |sign: &str, pods: &[Arc<Pod>]| {
        let mut names: Vec<String> =
            pods.iter().map(|pod| format!("{sign}{}", pod.name())).collect();
        names.sort();
        names
    };
    let mut words = Vec::new();
    if plan.create > 0 {
        words.push(format!("+{}", plan.create));
    }
    words.extend(names("-", &plan.withdraw));
    words.extend(names("!", &plan.end));
    words.extend(names("~", &plan.release));
    let conditions = plan.status.conditions.iter().flatten();
    words.extend(
        conditions.filter(|condition| condition.status == "True").map(|one| one.type_.clone()),
    );
    words.join(" ")
}

#[test]
fn decides_what_to_do() {
    let cases = [
        ("one pod", "completions=1 parallelism=1", "", "+1"),
        ("it runs", "completions=1 parallelism=1", "a", ""),
        ("several at once", "completions=5 parallelism=2", "a", "+1"),
        ("no more than are left", "completions=5 parallelism=4 succeeded=3", "a", "+1"),
        ("as many as wished without an end", "parallelism=3", "", "+3"),
        ("one is done: no more", "parallelism=3", "a b c:Succeeded,5", "~c"),
        ("too many", "completions=9 parallelism=1", "a:Pending b", "-a"),
        ("done, to be counted", "completions=1", "a:Succeeded", "~a SuccessCriteriaMet"),
        (
            "being counted",
            "completions=1 uncounted=a was=SuccessCriteriaMet",
            "a:Succeeded",
            "~a SuccessCriteriaMet",
        ),
        (
            "counted: complete",
            "completions=1 uncounted=a was=SuccessCriteriaMet",
            "a:Succeeded,free",
            "SuccessCriteriaMet Complete",
        ),
        (
            "its pod is gone: complete",
            "completions=1 uncounted=a was=SuccessCriteriaMet",
            "",
            "SuccessCriteriaMet Complete",
        ),
        ("done while others run", "completions=1", "a:Succeeded b", "-b ~a SuccessCriteriaMet"),
        ("nothing to do", "completions=0 parallelism=1", "", "SuccessCriteriaMet Complete"),
        ("a failure is replaced later", "completions=1", "a:Failed,5", "~a"),
        ("a failure is replaced", "completions=1 failed=1", "a:Failed,15,free", "+1"),
        ("two failures take longer", "completions=1 failed=2", "a:Failed,15 b:Failed,15", "~a ~b"),
        ("failed too often", "completions=1 limit=1 failed=1", "a:Failed b", "!b ~a FailureTarget"),
        (
            "failed",
            "completions=1 limit=0 failed=1 was=FailureTarget",
            "a:Failed,free",
            "FailureTarget Failed",
        ),
        ("restarted too often", "limit=3 restart=OnFailure", "a:restarts", "!a FailureTarget"),
        ("restarts elsewhere", "limit=3", "a:restarts", ""),
        ("too long", "completions=1 deadline=60 started=90", "a", "!a FailureTarget"),
        ("not yet too long", "completions=1 deadline=60 started=30", "a", ""),
        ("deleted: counted at once", "completions=1", "a:ends", "~a"),
        ("deleted: counted at its end", "completions=1 replace=Failed", "a:ends", ""),
        ("deleted and ended", "completions=1 replace=Failed", "a:gone", "~a"),
        ("withdrawn before", "completions=1", "a:ends,free", "+1"),
        ("suspended", "completions=1 suspend started=5", "a", "-a Suspended"),
        ("goes on", "completions=1 was=Suspended", "", "+1"),
        ("no policy", "podFailurePolicy", "", "FailureTarget Failed"),
        ("no indexes", "indexed completions=2", "", "FailureTarget Failed"),
    ];
    for (name, words, pod_words, expected) in cases {
        let (job, pods) = (job(words), pods(pod_words));
        let spec = job.spec.as_ref().unwrap();
        let input = Input { job: &job, spec, pods: &pods, now: now() };
        assert_eq!(text_of(&plan(&input)), expected, "{name}");
    }
}

#[test]
fn counts_each_pod_once() {
    let (job, pods) = (
        job("completions=5 parallelism=2 started=9 succeeded=1 uncounted=a"),
        pods("a:Succeeded,free b:Succeeded c d:ends"),
    );
    let spec = job.spec.as_ref().unwrap();
    let status = plan(&Input { job: &job, spec, pods: &pods, now: now() }).status;
    let uncounted = status.uncounted_terminated_pods.unwrap();
    assert_eq!((status.succeeded, status.failed, status.active), (Some(2), None, Some(1)));
    assert_eq!((status.ready, status.terminating), (Some(0), Some(1)));
    assert_eq!(uncounted.succeeded, Some(vec!["b".to_owned()]));
    assert_eq!(uncounted.failed, Some(vec!["d".to_owned()]));
}

#[test]
fn says_when_to_look_again_and_what_happened() {
    let check = |words: &str, pod_words: &str, after: Option<u64>, event: Option<&str>| {
        let (job, pods) = (job(words), pods(pod_words));
        let spec = job.spec.as_ref().unwrap();
        let plan = plan(&Input { job: &job, spec, pods: &pods, now: now() });
        assert_eq!(plan.after, after.map(Duration::from_secs), "{words}");
        assert_eq!(plan.events.first().map(|(_, reason, _)| *reason), event, "{words}");
    };
    check("completions=1 deadline=60 started=20", "a", Some(40), None);
    check("completions=1", "a:Failed,4", Some(6), None);
    check("completions=1 deadline=5 started=1", "a:Failed,4", Some(4), None);
    check("completions=0", "", None, Some("Completed"));
    check("completions=1 limit=0 failed=1", "", None, Some("BackoffLimitExceeded"));
    check("completions=1 suspend", "", None, Some("Suspended"));
    check("completions=1 was=Suspended", "a", None, Some("Resumed"));
}

#[test]
fn one_that_has_ended_goes_in_time() {
    let mut job = job("was=Complete ttlSecondsAfterFinished=30");
    let conditions = job.status.as_mut().unwrap().conditions.as_mut().unwrap();
    conditions[0].last_transition_time = Some(stamp(now()));
    let ended = finished(&job).unwrap();
    let expires = expiry(job.spec.as_ref().unwrap(), ended).unwrap();
    assert_eq!(expires.duration_since(now()), SignedDuration::from_secs(30));
    assert!(finished(&self::job("was=SuccessCriteriaMet")).is_none());
}
