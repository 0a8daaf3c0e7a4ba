use super::*;

fn ours() -> (String, String) {
    ("kube-system".to_owned(), "podscale-metrics".to_owned())
}

#[test]
fn only_api_services_that_lead_here_are_changed() {
    let object = |name: &str, more: Value| {
        let mut spec = json!({"service": {"namespace": "kube-system", "name": name}});
        for (key, value) in more.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        json!({"spec": spec})
    };
    let bundle = STANDARD.encode("PEM");
    let given = || Wanted::Bundle(json!({"spec": {"caBundle": bundle}}));
    let registration = Registration::ApiService("v1beta1.metrics.k8s.io".to_owned());
    for (object, expected) in [
        (object("metrics-server", json!({})), Wanted::Elsewhere),
        (object("podscale-metrics", json!({})), given()),
        (object("podscale-metrics", json!({"caBundle": "b2xk"})), given()),
        (object("podscale-metrics", json!({"caBundle": bundle})), Wanted::Nothing),
        (object("podscale-metrics", json!({"insecureSkipTLSVerify": true})), Wanted::Unverified),
        (json!({"spec": {}}), Wanted::Elsewhere),
    ] {
        assert_eq!(registration.wanted(&object, &ours(), "PEM"), expected, "{object}");
    }
}

#[test]
fn only_webhooks_that_lead_here_are_changed() {
    let webhook = |name: &str, bundle: Value| {
        let service = json!({"namespace": "kube-system", "name": name, "path": "/validate"});
        let mut config = json!({"service": service});
        if !bundle.is_null() {
            config["caBundle"] = bundle;
        }
        json!({"name": "validate.podscale.dev", "clientConfig": config, "timeoutSeconds": 5})
    };
    let bundle = Value::String(STANDARD.encode("PEM"));
    let ours_with = |bundle: &Value| webhook("podscale-metrics", bundle.clone());
    let (bare, old) = (ours_with(&Value::Null), ours_with(&json!("b2xk")));
    let current = ours_with(&bundle);
    let (other, url) =
        (webhook("other", json!("eA==")), json!({"clientConfig": {"url": "https://x"}}));
    let given = |webhooks: Value| Wanted::Bundle(json!({"webhooks": webhooks}));
    let registration = Registration::Webhooks("podscale".to_owned());
    for (webhooks, expected) in [
        (json!([]), Wanted::Elsewhere),
        (Value::Null, Wanted::Elsewhere),
        (json!([other, url]), Wanted::Elsewhere),
        (json!([bare]), given(json!([current]))),
        (json!([other, old, url]), given(json!([other, current, url]))),
        (json!([current, bare]), given(json!([current, current]))),
        (json!([other, current]), Wanted::Nothing),
    ] {
        let object = json!({"webhooks": webhooks});
        assert_eq!(registration.wanted(&object, &ours(), "PEM"), expected, "{object}");
    }
}
