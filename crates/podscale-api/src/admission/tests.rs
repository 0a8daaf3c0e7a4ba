use super::review::{Answer, answer};
use super::*;
use crate::translate::pod_autoscaler::checked;

fn with(mut object: Value, fields: Value) -> Value {
    for (name, value) in fields.as_object().into_iter().flatten() {
        object[name] = value.clone();
    }
    object
}

fn pod_autoscaler(fields: Value) -> Value {
    let spec = json!({"minReplicas": 1, "maxReplicas": 10,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "metrics": [{"type": "Resource", "name": "cpu", "resource": {"name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": 50}}}]});
    json!({"apiVersion": "podscale.dev/v1alpha1", "kind": "PodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop"}, "spec": with(spec, fields)})
}

fn chpa(fields: Value) -> Value {
    let spec = json!({"maxReplicas": 9, "scaleTargetRef": {"kind": "Deployment", "name": "web"},
        "metrics": [{"type": "Resource", "resource":
            {"name": "cpu", "targetAverageUtilization": 80}}]});
    json!({"apiVersion": "autoscalers.postmates.com/v1beta1", "kind": "CHPA",
        "metadata": {"name": "web", "namespace": "shop"}, "spec": with(spec, fields)})
}

fn scaled_object(fields: Value) -> Value {
    let spec = json!({"scaleTargetRef": {"name": "web"}, "minReplicaCount": 1,
        "triggers": [{"type": "cron", "metadata": {"timezone": "UTC", "start": "0 8 * * *",
            "end": "0 18 * * *", "desiredReplicas": "4"}}]});
    json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
        "metadata": {"name": "web", "namespace": "shop"}, "spec": with(spec, fields)})
}

fn kind_of(object: &Value) -> &'static Kind {
    let (group, _) =
        object["apiVersion"].as_str().and_then(|v| v.split_once('/')).expect("a group");
    find(group, object["kind"].as_str().expect("a kind")).expect("a kind that is checked")
}

/// What the controller would report in a condition, if anything.
fn reported(object: &Value) -> Option<String> {
    if kind_of(object).kind == pod_autoscaler::KIND {
        let mut pa: PodAutoscaler = serde_json::from_value(object.clone()).expect("it can be read");
        default_spec(&mut pa.spec);
        return checked(&pa, Ok(&[])).invalid().map(|why| why.to_string());
    }
    if kind_of(object).kind == scaled_object::KIND {
        let read = ScaledObject::deserialize(object).expect("it can be read");
        return keda_check::scaled_object(&read).err().map(|error| error.to_string());
    }
    let chpa: Chpa = serde_json::from_value(object.clone()).expect("any CHPA can be read");
    chpa.checked().err()
}

/// Each mistake as its field and the beginning of what is said of it.
#[test]
fn what_the_controller_would_report_is_refused_and_nothing_else() {
    let expression = |text: &str| json!({"combine": "Expression", "expression": text});
    let schedule = |fields: Value| {
        let one = json!({"name": "day", "start": "0 8 * * *", "duration": "8h", "minReplicas": 2});
        json!({"schedules": [with(one, fields)]})
    };
    let two = with(expression("cpu >"), json!({"syncPeriod": "5ms"}));
    let incorrect = json!({"metrics": [{"type": "Cpu"}, {"type": "Pods"}]});
    for (object, expected) in [
        (pod_autoscaler(json!({})), &[][..]),
        (pod_autoscaler(expression("cpu + 1")), &[]),
        (pod_autoscaler(schedule(json!({"timeZone": "Europe/Zurich"}))), &[]),
        (chpa(json!({})), &[]),
        (
            pod_autoscaler(expression("cpu > 1")),
            &[
                "spec.expression Invalid value: \"cpu > 1\": line 1, column 1: the expression must be a number",
            ],
        ),
        (
            pod_autoscaler(expression("cpu + queue")),
            &[
                "spec.expression Invalid value: \"cpu + queue\": line 1, column 7: unknown metric \"queue\"",
            ],
        ),
        (
            pod_autoscaler(expression("cpu.rate")),
            &[
                "spec.expression Invalid value: \"cpu.rate\": line 1, column 5: a metric has no \"rate\"",
            ],
        ),
        (
            pod_autoscaler(schedule(json!({"start": "8 o'clock"}))),
            &[
                "spec.schedules[0].start Invalid value: \"8 o'clock\": a cron expression has 5 fields",
            ],
        ),
        (
            pod_autoscaler(schedule(json!({"timeZone": "Mars/Olympus"}))),
            &["spec.schedules[0].timeZone Invalid value: \"Mars/Olympus\""],
        ),
        (pod_autoscaler(json!({"maxReplicas": 0})), &["spec.maxReplicas Invalid value: 0"]),
        (
            pod_autoscaler(two),
            &["spec.expression Invalid value: \"cpu >\"", "spec.syncPeriod Invalid value: \"5ms\""],
        ),
        (
            chpa(json!({"scaleTargetRef": {"kind": "StatefulSet", "name": "web"}})),
            &["spec.scaleTargetRef.kind configurable chpa doesn't support StatefulSet kind"],
        ),
        (
            chpa(incorrect),
            &[
                "spec.metrics[0].type incorrect metric.Type: 'Cpu'",
                "spec.metrics[1].type metric.Pods is nil",
            ],
        ),
        (chpa(json!({"maxReplicas": "many"})), &["spec.maxReplicas invalid type: string"]),
        (scaled_object(json!({})), &[]),
        (
            scaled_object(json!({"idleReplicaCount": 2})),
            &["spec IdleReplicaCount=2 must be less than MinReplicaCount=1"],
        ),
        (
            scaled_object(json!({"minReplicaCount": 200})),
            &["spec MinReplicaCount=200 must be less than MaxReplicaCount=100"],
        ),
        (
            scaled_object(json!({"triggers": []})),
            &["spec.triggers no triggers defined in the ScaledObject/ScaledJob"],
        ),
        (
            scaled_object(json!({"advanced": {"scalingModifiers": {"formula": "a +"}}})),
            &["spec error validating formula in ScalingModifiers"],
        ),
    ] {
        let found = kind_of(&object).judge(&object, None).causes;
        let found: Vec<String> =
            found.iter().map(|c| format!("{} {}", c.field, c.message)).collect();
        let fits = found.len() >= expected.len()
            && expected.iter().all(|part| found.iter().any(|text| text.starts_with(part)));
        assert!(fits && found.is_empty() == expected.is_empty(), "{object}: {found:#?}");
        assert_eq!(found.is_empty(), reported(&object).is_none(), "{object}: {found:#?}");
    }
    let unreadable = SCALED_OBJECTS.check(&scaled_object(json!({"maxReplicaCount": "many"})));
    assert_eq!(unreadable[0].field, "spec.maxReplicaCount");
    let unreadable = POD_AUTOSCALERS.check(&pod_autoscaler(json!({"minReplicas": "few"})));
    assert_eq!(
        (&*unreadable[0].field, unreadable[0].reason),
        ("spec.minReplicas", "FieldValueTypeInvalid")
    );
}

#[test]
fn certain_lints_are_warnings_that_say_how_to_silence_them() {
    let warnings = |object: &Value| kind_of(object).judge(object, None).warnings;
    let equal = pod_autoscaler(json!({"minReplicas": 10}));
    assert_eq!(
        warnings(&equal),
        [
            "spec.maxReplicas: minReplicas and maxReplicas are both 10: nothing can be scaled [min-equals-max; \
            annotation podscale.dev/ignore-lints: min-equals-max silences it]"
        ]
    );
    let mut silenced = equal.clone();
    silenced["metadata"]["annotations"] = json!({IGNORE_ANNOTATION: "min-equals-max"});
    assert_eq!(warnings(&silenced), [""; 0]);
    let advice = json!({"behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}});
    assert_eq!(warnings(&pod_autoscaler(advice)), [""; 0], "that is a matter of opinion");
    let odd = json!({"type": "Resource", "resource":
        {"name": "cpu", "targetAverageUtilization": 80, "li\nne": 1, ("x".repeat(500)): 1}});
    let found = warnings(&chpa(json!({"metrics": [odd]})));
    assert_eq!(found.len(), 2, "{found:#?}");
    for text in found {
        assert!(text.chars().count() <= MAX_WARNING_CHARACTERS && !text.contains('\n'), "{text}");
        assert!(text.ends_with(
            "[unread-field; annotation podscale.dev/ignore-lints: unread-field silences it]"
        ));
    }
    let unneeded = warnings(&scaled_object(json!({"cooldownPeriod": 60})));
    assert!(unneeded[0].starts_with("CooldownPeriod is configured but is not relevant."));
    assert_eq!(
        warnings(&scaled_object(json!({"minReplicaCount": 0, "cooldownPeriod": 60}))),
        [""; 0]
    );
    let names: Vec<&str> = lint::lints().iter().map(|lint| lint.name).collect();
    assert!(CERTAIN.iter().all(|name| names.contains(name)), "{names:?}");
}

/// The question about an object.
fn question(operation: &str, object: &Value, old: &Value, more: Value) -> Value {
    let (group, version) =
        object["apiVersion"].as_str().and_then(|v| v.split_once('/')).expect("a group");
    let request = json!({"uid": "u-1", "operation": operation, "name": "web", "namespace": "shop",
        "kind": {"group": group, "version": version, "kind": object["kind"]},
        "object": object, "oldObject": old, "dryRun": false});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": with(request, more)})
}

fn ask(question: &Value) -> Answer {
    answer(question.to_string().as_bytes()).expect("an answer")
}

#[test]
fn a_refusal_names_every_field() {
    let bad = pod_autoscaler(
        json!({"combine": "Expression", "expression": "cpu >", "syncPeriod": "5ms"}),
    );
    let Answer { review, refused } =
        ask(&question("CREATE", &bad, &Value::Null, json!({"dryRun": true})));
    assert_eq!(
        (&review["apiVersion"], &review["kind"]),
        (&json!("admission.k8s.io/v1"), &json!("AdmissionReview"))
    );
    let response = &review["response"];
    assert_eq!((&response["uid"], &response["allowed"]), (&json!("u-1"), &json!(false)));
    let status = &response["status"];
    assert_eq!((&status["code"], &status["reason"]), (&json!(422), &json!("Invalid")));
    let message = status["message"].as_str().expect("a message");
    let begin = "PodAutoscaler.podscale.dev \"web\" is invalid: [spec.expression: Invalid value: ";
    assert!(
        message.starts_with(begin) && message.contains(", spec.syncPeriod: Invalid value: "),
        "{message}"
    );
    let details = &status["details"];
    assert_eq!((&details["kind"], &details["name"]), (&json!("PodAutoscaler"), &json!("web")));
    let fields: Vec<&Value> =
        details["causes"].as_array().expect("causes").iter().map(|cause| &cause["field"]).collect();
    assert_eq!(fields, ["spec.expression", "spec.syncPeriod"]);
    let refused = refused.expect("it is refused");
    assert_eq!(
        (refused.kind, &*refused.namespace, &*refused.name),
        ("PodAutoscaler", "shop", "web")
    );
    let mut generated = question("CREATE", &bad, &Value::Null, json!({"name": ""}));
    generated["request"]["object"]["metadata"]["name"] = json!("web-x7p2q");
    assert_eq!(ask(&generated).refused.expect("it is refused").name, "web-x7p2q");
}

#[test]
fn what_does_not_change_a_spec_is_let_through() {
    let bad = pod_autoscaler(json!({"combine": "Expression", "expression": "cpu >"}));
    let good = pod_autoscaler(json!({}));
    let (mut labelled, mut leaving) = (bad.clone(), bad.clone());
    labelled["metadata"]["labels"] = json!({"team": "shop"});
    labelled["status"] = json!({"observedGeneration": 2});
    leaving["metadata"]["deletionTimestamp"] = json!("2026-11-16T12:00:00Z");
    let (none, nothing) = (Value::Null, json!({}));
    let status = json!({"subResource": "status"});
    let other = json!({"kind": {"group": "apps", "version": "v1", "kind": "Deployment"}});
    for (what, question, allowed) in [
        ("a good one", question("CREATE", &good, &none, nothing.clone()), true),
        ("a bad one", question("CREATE", &bad, &none, nothing.clone()), false),
        ("a good one that becomes bad", question("UPDATE", &bad, &good, nothing.clone()), false),
        ("a bad one that becomes good", question("UPDATE", &good, &bad, nothing.clone()), true),
        (
            "metadata and status of a bad one",
            question("UPDATE", &labelled, &bad, nothing.clone()),
            true,
        ),
        (
            "a bad one that goes, but for a finalizer",
            question("UPDATE", &leaving, &good, nothing.clone()),
            true,
        ),
        ("the status as a part", question("UPDATE", &bad, &good, status), true),
        (
            "a deletion",
            question("DELETE", &bad, &none, json!({"object": null, "oldObject": bad})),
            true,
        ),
        ("another kind", question("CREATE", &bad, &none, other), true),
    ] {
        let Answer { review, refused } = ask(&question);
        assert_eq!(review["response"]["allowed"], allowed, "{what}: {review}");
        assert_eq!(refused.is_none(), allowed, "{what}");
    }
}

/// A question about an object with so many lists in each other, which no `Value` can hold.
fn nested(question: &Value, depth: usize) -> String {
    let (open, close) = ("[".repeat(depth), "]".repeat(depth));
    question.to_string().replace("\"minReplicas\":1", &format!("\"minReplicas\":{open}{close}"))
}

#[test]
fn only_objects_that_are_checked_are_read_and_only_up_to_a_size() {
    let good = question("CREATE", &pod_autoscaler(json!({})), &Value::Null, json!({}));
    let with_kind = |kind: &str| nested(&good, 1000).replace("\"kind\":\"PodAutoscaler\"", kind);
    let other = answer(with_kind("\"kind\":\"Other\"").as_bytes()).expect("an answer").review;
    assert_eq!(other["response"]["allowed"], true);
    assert_eq!(other["response"]["warnings"][0], "Podscale does not check Other.podscale.dev");
    let mut large = pod_autoscaler(json!({"combine": "Expression", "expression": "cpu >"}));
    let checked = question("UPDATE", &large, &pod_autoscaler(json!({})), json!({}));
    assert!(ask(&checked).refused.is_some());
    large["metadata"]["annotations"] = json!({"text": "x".repeat(256 * 1024)});
    let Answer { review, refused } =
        ask(&question("UPDATE", &large, &pod_autoscaler(json!({})), json!({})));
    assert_eq!((refused, &review["response"]["allowed"]), (None, &json!(true)));
    let warning = "Podscale does not check objects of more than 256 KiB";
    assert_eq!(review["response"]["warnings"], json!([warning]));
    // Whoever takes off what made it large leaves the spec as it is.
    let small = pod_autoscaler(json!({"combine": "Expression", "expression": "cpu >"}));
    assert_eq!(ask(&question("UPDATE", &small, &large, json!({}))).refused, None);
    large["spec"]["text"] = json!("x".repeat(256 * 1024));
    assert!(ask(&question("UPDATE", &small, &large, json!({}))).refused.is_some());
}

#[test]
fn what_is_no_review_is_an_error_that_says_so() {
    let good = question("CREATE", &pod_autoscaler(json!({})), &Value::Null, json!({}));
    for (body, expected) in [
        (String::new(), "the body is not an AdmissionReview: EOF while parsing"),
        ("[1".to_owned(), "the body is not an AdmissionReview: "),
        (
            "{}".to_owned(),
            "the body is not an AdmissionReview of admission.k8s.io/v1: its kind is \"\"",
        ),
        (
            with(good.clone(), json!({"apiVersion": "admission.k8s.io/v1beta1"})).to_string(),
            "its apiVersion \"admission.k8s.io/v1beta1\"",
        ),
        (with(good.clone(), json!({"request": null})).to_string(), "has no request with a uid"),
        (
            with(good.clone(), json!({"request": {"uid": 7}})).to_string(),
            "invalid type: integer `7`",
        ),
        (
            question("CREATE", &good["request"]["object"], &Value::Null, json!({"object": null}))
                .to_string(),
            "the request to CREATE PodAutoscaler \"web\" has no object",
        ),
        (format!("{{\"request\": {{\"object\": {}", "[".repeat(100_000)), "EOF while parsing"),
        (nested(&good, 1000), "recursion limit exceeded"),
    ] {
        let error = answer(body.as_bytes()).expect_err("no review").to_string();
        assert!(error.contains(expected), "{error}");
    }
}
