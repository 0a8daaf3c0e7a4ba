//! Who may have which identity in a cloud.

use super::*;

const ROLE: &str = "arn:aws:iam::012345678912:role/web";

fn queue(kind: &str, name: &str, fields: Value) -> Value {
    let mut trigger = json!({"type": "aws-sqs-queue", "authenticationRef": {"kind": kind, "name": name},
        "metadata": {"queueURL": "orders", "awsRegion": "eu-central-1"}});
    for (name, value) in fields.as_object().expect("fields") {
        trigger["metadata"][name] = value.clone();
    }
    trigger
}

/// A cluster whose workload has a service account with these annotations.
fn started_with(annotations: Value, limits: Limits) -> (Triggers, Arc<Mutex<Vec<String>>>) {
    let mut objects = objects();
    for (path, object) in &mut objects {
        if *path == "/apis/apps/v1/namespaces/shop/deployments/web" {
            object["spec"]["template"]["spec"]["serviceAccountName"] = json!("web");
        }
    }
    objects.extend([
        (
            "/api/v1/namespaces/shop/serviceaccounts/web",
            json!({"metadata": {"annotations": annotations}}),
        ),
        (
            "/api/v1/namespaces/shop/serviceaccounts/web/token",
            json!({"status": {"token": PLANTED}}),
        ),
    ]);
    let (client, asked) = client(&objects);
    let triggers = Triggers::new(&client, Clock::wall(), limits);
    for (name, identity) in [
        ("own", json!({"provider": "aws"})),
        ("role", json!({"provider": "aws", "roleArn": ROLE, "externalID": "x"})),
        ("workload", json!({"provider": "aws", "identityOwner": "workload"})),
        ("eks", json!({"provider": "aws-eks"})),
        ("azure", json!({"provider": "azure-workload"})),
        ("gcp", json!({"provider": "gcp"})),
        ("none", json!({"provider": "none"})),
    ] {
        let spec = json!({"podIdentity": identity});
        let of_shop = json!({"metadata": {"name": name, "namespace": "shop"}, "spec": spec});
        triggers.authentications.put(of_shop, false);
        triggers.authentications.put(json!({"metadata": {"name": name}, "spec": spec}), true);
    }
    (triggers, asked)
}

fn with_role() -> Value {
    json!({"eks.amazonaws.com/role-arn": ROLE})
}

#[tokio::test]
async fn the_controllers_identity_is_for_authentications_of_the_cluster() {
    let (triggers, asked) = started_with(with_role(), everywhere());
    let there = "s0-aws-sqs-orders";
    let own = "is the controller's own identity, which only ClusterTriggerAuthentications may use";
    let cluster = "ClusterTriggerAuthentication";
    let shop = "TriggerAuthentication";
    let operator = json!({"identityOwner": "operator"});
    for (kind, name, fields, expected) in [
        (cluster, "own", json!({}), there),
        (cluster, "own", operator.clone(), there),
        (cluster, "role", json!({}), there),
        (cluster, "workload", json!({}), there),
        (cluster, "eks", json!({}), there),
        (shop, "own", json!({}), own),
        (shop, "role", json!({}), own),
        (shop, "workload", json!({}), there),
        (shop, "eks", json!({}), there),
        (shop, "eks", operator.clone(), "identityOwner operator needs the controller's identity"),
        (shop, "none", operator, "identityOwner operator needs the controller's identity"),
        (cluster, "none", json!({}), "awsAccessKeyID not found"),
        (
            cluster,
            "azure",
            json!({}),
            "podIdentity azure-workload is not supported: no type of trigger",
        ),
        (cluster, "gcp", json!({}), "podIdentity gcp is not supported: no type of trigger"),
    ] {
        asked.lock().clear();
        let found = outcome(&triggers, &queue(kind, name, fields.clone())).await;
        let fits = if expected == there { found == there } else { found.contains(expected) };
        assert!(fits, "{kind} {name} {fields}: {found}");
        assert!(!found.contains(PLANTED), "{found}");
        let tokens = asked.lock().iter().filter(|path| path.ends_with("/token")).count();
        let of_workload = matches!(name, "workload" | "eks");
        assert_eq!(tokens, usize::from(of_workload), "{kind} {name}");
    }
    let redis = redis(&format!("{cluster}/own"), &[("listName", "jobs")]);
    let found = outcome(&triggers, &redis).await;
    assert!(found.contains("podIdentity is not supported for triggers of type redis"), "{found}");
}

#[tokio::test]
async fn workloads_without_a_role_or_outside_of_the_limits_have_none() {
    let shop = queue("TriggerAuthentication", "workload", json!({}));
    let (triggers, _) = started_with(json!({}), everywhere());
    let found = outcome(&triggers, &shop).await;
    let missing = "ServiceAccount \"web\" of namespace \"shop\" has no annotation \"eks.amazonaws.com/role-arn\"";
    assert!(found.ends_with(missing), "{found}");
    let elsewhere = BTreeSet::from(["elsewhere".to_owned()]);
    let limits = Limits { namespaces: elsewhere, ..everywhere() };
    let (triggers, asked) = started_with(with_role(), limits);
    let found = outcome(&triggers, &shop).await;
    assert!(found.contains("is not one of the controller's --trigger-namespaces"), "{found}");
    let read = asked.lock().iter().any(|path| path.contains("serviceaccounts"));
    assert!(!read, "{:?}", asked.lock());
}
