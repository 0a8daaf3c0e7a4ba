//! What is wrong with objects, in KEDA's words.

use crate::keda::scaled_object::ScaledObject;
use crate::keda::{AuthenticationSpec, ScaledJob, check};
use serde_json::{Value, json};

fn object(name: &str, change: Value) -> ScaledObject {
    let mut spec = json!({"scaleTargetRef": {"name": "web"},
        "triggers": [{"type": "redis", "name": "a", "metadata": {}}]});
    for (field, value) in change.as_object().expect("fields") {
        spec[field] = value.clone();
    }
    let object = json!({"metadata": {"name": name, "namespace": "shop"}, "spec": spec});
    serde_json::from_value(object).expect("an object")
}

const BOUNDS: &str =
    "ScaledObject doesn't have correct Idle/Min/Max Replica Counts specification: ";
const TRIGGERS: &str = "ScaledObject doesn't have correct triggers specification: ";
const HPA: &str = "failed to ensure HPA is correctly created for ScaledObject: ";

#[test]
fn the_first_problem_of_a_scaled_object_is_named() {
    let modifiers = |modifiers: Value| json!({"advanced": {"scalingModifiers": modifiers}});
    let cpu = || json!([{"type": "cpu", "metadata": {"value": "50"}}]);
    let twice = json!([{"type": "redis", "name": "a", "metadata": {}},
        {"type": "kafka", "name": "a", "metadata": {}}]);
    let cached = json!([{"type": "cron", "useCachedMetrics": true, "metadata": {}}]);
    let policy =
        json!({"scaleUp": {"policies": [{"type": "Pods", "value": 0, "periodSeconds": 15}]}});
    for (change, step, problem) in [
        (
            json!({"scaleTargetRef": {}}),
            "ScaledObject doesn't have correct scaleTargetRef specification: ",
            "ScaledObject.spec.scaleTargetRef.name is missing",
        ),
        (
            json!({"minReplicaCount": 5, "maxReplicaCount": 4}),
            BOUNDS,
            "MinReplicaCount=5 must be less than MaxReplicaCount=4",
        ),
        (
            json!({"minReplicaCount": 200}),
            BOUNDS,
            "MinReplicaCount=200 must be less than MaxReplicaCount=100",
        ),
        (
            json!({"idleReplicaCount": 0}),
            BOUNDS,
            "IdleReplicaCount=0 must be less than MinReplicaCount=0",
        ),
        (
            json!({"idleReplicaCount": 1, "minReplicaCount": 0}),
            BOUNDS,
            "IdleReplicaCount=1 must be less than MinReplicaCount=1",
        ),
        (json!({"triggers": []}), TRIGGERS, "no triggers defined in the ScaledObject/ScaledJob"),
        (
            json!({"triggers": twice}),
            TRIGGERS,
            "triggerName \"a\" is defined multiple times in the \
            ScaledObject/ScaledJob, but it must be unique",
        ),
        (
            json!({"triggers": cached}),
            TRIGGERS,
            "property \"useCachedMetrics\" is not supported for \"cron\" scaler",
        ),
        (
            json!({"fallback": {"failureThreshold": -1, "replicas": 2}}),
            HPA,
            "FailureThreshold=-1 & Replicas=2 must both be greater than or equal to 0",
        ),
        (
            json!({"triggers": cpu(), "fallback": {"failureThreshold": 1, "replicas": 2}}),
            HPA,
            "at least one trigger (that is not cpu or memory) has to have the `AverageValue` type for \
             the fallback to be enabled",
        ),
        (
            json!({"fallback": {"failureThreshold": 1, "replicas": 2, "behavior": "scalingModifiers"}}),
            HPA,
            "scalingModifiers fallback behavior requires scalingModifiers.formula to be defined",
        ),
        (modifiers(json!({"target": "1"})), HPA, "error ScalingModifiers.Formula is mandatory"),
        (
            modifiers(json!({"formula": "a"})),
            HPA,
            "error validating formula in ScalingModifiers\nformula is given but target is empty",
        ),
        (
            modifiers(json!({"formula": "a + c", "target": "1"})),
            HPA,
            "error validating formula in ScalingModifiers\nunknown name c",
        ),
        (
            modifiers(json!({"formula": "a", "target": "0"})),
            HPA,
            "error validating target in ScalingModifiers\nerror converting target for scalingModifiers \
             (string->float) to valid target: \"0\" is not a number above zero",
        ),
        (
            modifiers(json!({"formula": "a", "target": "1", "metricType": "Utilization"})),
            HPA,
            "error validating target in ScalingModifiers\nerror trigger type is Utilization, but it \
             needs to be AverageValue or Value for external metrics",
        ),
        (
            json!({"advanced": {"horizontalPodAutoscalerConfig": {"behavior": policy}}}),
            HPA,
            "HorizontalPodAutoscaler.autoscaling \"keda-hpa-web\" is invalid: \
             spec.behavior.scaleUp.policies[0].value: Invalid value: 0: must be greater than zero",
        ),
    ] {
        let found = check::scaled_object(&object("web", change.clone())).expect_err("a problem");
        assert_eq!(found.to_string(), format!("{step}{problem}"), "{change}");
    }
    // It would scale between one and the maximum, which KEDA's operator does as well.
    let cpu = object("web", json!({"triggers": cpu()}));
    assert_eq!(check::scaled_object(&cpu), Ok(()));
    assert_eq!(check::warnings(&cpu.spec).len(), 1);
}

#[test]
fn names_must_fit_into_labels() {
    let problem = |name: &str, change: Value| {
        check::scaled_object(&object(name, change)).map_err(|error| error.problem)
    };
    let long = "n".repeat(64);
    let expected = format!(
        "scaledobject name \"{long}\" is 64 characters long; must be no more than 63 \
        characters because it is used as the \"scaledobject.keda.sh/name\" label value"
    );
    assert_eq!(problem(&long, json!({})), Err(expected));
    let derived = "n".repeat(55);
    let expected = format!(
        "HPA name \"keda-hpa-{derived}\" derived from scaledobject is 64 characters \
        long; must be no more than 63 characters; set spec.advanced.horizontalPodAutoscalerConfig.name \
        to a shorter name or shorten the scaledobject name"
    );
    assert_eq!(problem(&derived, json!({})), Err(expected));
    let named = json!({"advanced": {"horizontalPodAutoscalerConfig": {"name": "short"}}});
    assert_eq!(problem(&derived, named), Ok(()));
}

#[test]
fn what_has_no_effect_is_warned_of() {
    let warned = |change: Value| -> Vec<String> {
        let warnings = check::warnings(&object("web", change).spec);
        warnings.iter().map(|text| text.split(' ').next().expect("a word").to_owned()).collect()
    };
    let both =
        |min: i32| json!({"pollingInterval": 5, "cooldownPeriod": 5, "minReplicaCount": min});
    assert_eq!(warned(both(1)), ["PollingInterval", "CooldownPeriod"]);
    assert_eq!(warned(both(0)), [""; 0]);
    let mut idle = both(2);
    idle["idleReplicaCount"] = json!(0);
    assert_eq!(warned(idle), [""; 0]);
}

#[test]
fn triggers_of_jobs_have_no_metric_type() {
    let job = |triggers: Value| -> ScaledJob {
        serde_json::from_value(json!({"spec": {"triggers": triggers}})).expect("a job")
    };
    let problem = |triggers| check::scaled_job(&job(triggers)).expect_err("a problem").to_string();
    assert_eq!(
        problem(json!([])),
        "ScaledJob doesn't have correct triggers specification: no triggers \
        defined in the ScaledObject/ScaledJob"
    );
    let typed = json!([{"type": "redis", "metadata": {}, "metricType": "Value"}]);
    let expected = "Cannot set metricType in ScaledJob triggers: metricType is set in the trigger of \
                    type redis";
    assert_eq!(problem(typed), expected);
}

#[test]
fn authentications_are_checked_as_by_the_webhook() {
    let azure = |more: Value| {
        let mut identity = json!({"provider": "azure-workload"});
        for (name, value) in more.as_object().expect("fields") {
            identity[name] = value.clone();
        }
        json!({"podIdentity": identity})
    };
    let token = |url: &str| json!({"oauth2": {"type": "clientCredentials", "clientId": "c", "tokenUrl": url}});
    let secret = json!({"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}});
    let principal =
        json!({"tenantId": "t", "clientId": "c", "clientSecret": secret, "cloud": "Private"});
    for (spec, problem) in [
        (azure(json!({})), ""),
        (azure(json!({"identityId": ""})), "identityId of PodIdentity should not be empty."),
        (
            azure(json!({"identityAuthorityHost": "h"})),
            "identityTenantID of PodIdentity should not be nil",
        ),
        (
            azure(json!({"identityTenantId": ""})),
            "identityTenantId of PodIdentity should not be empty.",
        ),
        (
            json!({"podIdentity": {"provider": "aws", "roleArn": "r", "identityOwner": "workload"}}),
            "roleArn of PodIdentity can't be set",
        ),
        (
            json!({"podIdentity": {"provider": "aws", "externalID": "e"}}),
            "externalID of PodIdentity",
        ),
        (
            json!({"oauth2": {"type": "password"}}),
            "oauth2.type must be 'clientCredentials', got 'password'",
        ),
        (token("https://example.org/token"), ""),
        (token("ftp://example.org"), "oauth2.tokenUrl must be a valid http or https URL"),
        (token("https:///token"), "oauth2.tokenUrl must be a valid http or https URL"),
        (
            json!({"azureServicePrincipal": principal}),
            "azureServicePrincipal.activeDirectoryEndpoint is required when cloud is Private",
        ),
        (
            json!({"azureServicePrincipal": {"tenantId": "t", "clientId": "c"}}),
            "azureServicePrincipal requires either clientSecret or clientCertificate",
        ),
    ] {
        let read: AuthenticationSpec = serde_json::from_value(spec.clone()).expect("a spec");
        let found = check::authentication(&read).err().unwrap_or_default();
        assert!(
            found.starts_with(problem) && found.is_empty() == problem.is_empty(),
            "{spec}: {found}"
        );
    }
}
