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
        ("azure-of-web", json!({"provider": "azure-workload", "identityOwner": "workload"})),
        (
            "azure-named",
            json!({"provider": "azure-workload", "identityOwner": "workload", "identityId": "c"}),
        ),
        ("gcp", json!({"provider": "gcp"})),
        ("gcp-workload", json!({"provider": "gcp", "identityOwner": "workload"})),
        ("other", json!({"provider": "other"})),
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
            "podIdentity azure-workload is not supported for triggers of type aws-sqs-queue",
        ),
        (shop, "azure", json!({}), own),
        (shop, "gcp", json!({}), own),
        (shop, "gcp-workload", json!({}), "and not that of a workload"),
        (cluster, "other", json!({}), "podIdentity other is not supported: no type of trigger"),
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
    assert!(
        found.contains("podIdentity aws is not supported for triggers of type redis"),
        "{found}"
    );
}

#[tokio::test]
async fn identities_of_azure_and_google_follow_the_same_rules() {
    let annotations = json!({"azure.workload.identity/client-id": "web", "azure.workload.identity/tenant-id": "t"});
    let (cluster, shop) = ("ClusterTriggerAuthentication", "TriggerAuthentication");
    let own = "is the controller's own identity, which only ClusterTriggerAuthentications may use";
    let metrics = |kind: &str, name: &str, address: &str| {
        json!({"type": "prometheus", "authenticationRef": {"kind": kind, "name": name},
            "metadata": {"serverAddress": address, "query": "up", "threshold": "1"}})
    };
    let azure = "https://shop.westeurope.prometheus.monitor.azure.com";
    let google = "https://monitoring.googleapis.com/v1/projects/shop/location/global/prometheus";
    let there = "s0-prometheus";
    let no_client =
        "has no annotation \"azure.workload.identity/client-id\", and podIdentity no identityId";
    // The tests' controller has no identity at Azure; a workload's names all that is needed.
    let none = "the identity at Azure is not known";
    for (annotations, kind, name, address, expected, tokens) in [
        (&annotations, cluster, "azure", azure, none, 0),
        (
            &annotations,
            cluster,
            "azure",
            "https://evil.test",
            "serverAddress is none of the cloud",
            0,
        ),
        (&annotations, shop, "azure", azure, own, 0),
        (&annotations, shop, "azure-of-web", azure, there, 1),
        (&annotations, shop, "azure-of-web", "https://p.shop", there, 1),
        (&annotations, cluster, "azure-of-web", azure, there, 1),
        (&json!({}), shop, "azure-of-web", azure, no_client, 0),
        (&json!({}), shop, "azure-named", azure, "set podIdentity.identityTenantId", 1),
        (&json!({}), cluster, "gcp", google, there, 0),
        (&json!({}), cluster, "gcp", "https://evil.test", "serverAddress is none of the cloud", 0),
        (&json!({}), shop, "gcp", google, own, 0),
    ] {
        let (triggers, asked) = started_with(annotations.clone(), everywhere());
        let found = outcome(&triggers, &metrics(kind, name, address)).await;
        let fits = if expected == there { found == there } else { found.contains(expected) };
        assert!(fits, "{kind} {name} {address}: {found}");
        assert!(!found.contains(PLANTED), "{found}");
        let count = asked.lock().iter().filter(|path| path.ends_with("/token")).count();
        assert_eq!(count, tokens, "{kind} {name}");
    }
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
