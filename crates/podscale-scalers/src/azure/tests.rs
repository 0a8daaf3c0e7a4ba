//! Identities against a server in place of Microsoft's, which checks every field of what it is asked.

use super::*;
use crate::identity::Identity;
use crate::tests::{context, soon, spec_of};
use crate::{Scaler, connect, parse};
use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};

/// What must not be seen.
const PLANTED: &str = "hunter2";
const ANSWER: &str = r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"3"]}]}}"#;

/// What was asked for: path, client, token and scope.
type Asked = Arc<Mutex<Vec<String>>>;

async fn start() -> (String, Asked) {
    let asked = Asked::default();
    let log = Arc::clone(&asked);
    let token = async move |uri: http::Uri, body: String| {
        let form: HashMap<String, String> =
            form_urlencoded::parse(body.as_bytes()).into_owned().collect();
        assert_eq!(form.len(), 5, "{form:?}");
        assert_eq!(form["grant_type"], "client_credentials");
        assert_eq!(
            form["client_assertion_type"],
            "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        );
        let (client, assertion) = (&form["client_id"], &form["client_assertion"]);
        log.lock().push(format!("{} {client} {assertion} {}", uri.path(), form["scope"]));
        match assertion.as_str() {
            "wrong" => (
                StatusCode::UNAUTHORIZED,
                format!(r#"{{"error":"invalid_client","error_description":"{PLANTED}"}}"#),
            ),
            _ => (
                StatusCode::OK,
                format!(
                    r#"{{"token_type":"Bearer","expires_in":3599,"access_token":"{PLANTED}"}}"#
                ),
            ),
        }
    };
    let query = async |headers: HeaderMap| match headers
        .get("authorization")
        .and_then(|value| value.to_str().ok())
    {
        Some(found) if found == format!("Bearer {PLANTED}") => (StatusCode::OK, ANSWER),
        _ => (StatusCode::UNAUTHORIZED, ""),
    };
    let router = Router::new()
        .route("/{tenant}/oauth2/v2.0/token", post(token))
        .route("/api/v1/query", get(query))
        .route("/api/queues/{vhost}/{queue}", get(async || r#"{"messages":5}"#));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, asked)
}

fn with_variables(variables: &[(&str, &str)]) -> Context {
    let known: BTreeMap<String, Secret> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), Secret::from(*value))).collect();
    let mut context = context();
    context.freshness = Duration::ZERO;
    context.variables = Arc::new(move |name| known.get(name).cloned());
    context
}

fn of_controller() -> AzureIdentity {
    AzureIdentity { client: None, tenant: None, authority: None, account: Federation::Controller }
}

fn of_workload(token: &str) -> AzureIdentity {
    let account = Federation::Workload { account: "shop/web".to_owned(), token: token.into() };
    AzureIdentity {
        client: Some("web".to_owned()),
        tenant: Some("t/../x".to_owned()),
        authority: None,
        account,
    }
}

fn trigger(
    context: &Context,
    kind: &str,
    text: &str,
    identity: AzureIdentity,
) -> Result<Box<dyn Scaler>, String> {
    let mut spec = spec_of(kind, text);
    spec.identity = Some(Identity::Azure(identity));
    let parsed = parse(&spec).map_err(|errors| errors.to_string())?;
    assert!(!format!("{parsed:?}").contains("token-of"), "{parsed:?}");
    connect(parsed, context).map_err(|error| error.to_string())
}

/// The value of a trigger, or why there is none.
async fn poll(scaler: &dyn Scaler) -> String {
    let polled = match scaler.poll(soon()).await {
        Ok(values) => values[0].value.to_string(),
        Err(error) => error.to_string(),
    };
    assert!(!polled.contains(PLANTED), "{polled}");
    polled
}

#[tokio::test]
async fn tokens_are_asked_for_once_and_shared() {
    let (address, asked) = start().await;
    let file = std::env::temp_dir().join(format!("podscale-azure-{}", std::process::id()));
    std::fs::write(&file, "token-of-controller\n").expect("written");
    let context = with_variables(&[
        ("AZURE_AUTHORITY_HOST", &format!("{address}/")),
        ("AZURE_CLIENT_ID", "own"),
        ("AZURE_TENANT_ID", "home"),
        ("AZURE_FEDERATED_TOKEN_FILE", &file.display().to_string()),
    ]);
    let prometheus = format!("serverAddress={address};query=up;threshold=1");
    let triggers = [prometheus.clone(), format!("{prometheus};namespace=shop")]
        .map(|text| trigger(&context, "prometheus", &text, of_controller()).expect("a trigger"));
    for found in &triggers {
        assert_eq!((poll(&**found).await, poll(&**found).await), ("3".to_owned(), "3".to_owned()));
        let there = [
            "/home/oauth2/v2.0/token own token-of-controller https://prometheus.monitor.azure.com/.default",
        ];
        assert_eq!(*asked.lock(), there);
    }
    asked.lock().clear();
    // Another identity, and another resource.
    let mut other = of_controller();
    (other.client, other.tenant) = (Some("c".to_owned()), Some("t".to_owned()));
    let text =
        format!("queueName=q;auth.host={address}/v;auth.workloadIdentityResource=api://rabbit");
    let found = trigger(&context, "rabbitmq", &text, other).expect("a trigger");
    assert_eq!(poll(&*found).await, "5");
    let there = ["/t/oauth2/v2.0/token c token-of-controller api://rabbit/.default"];
    assert_eq!(*asked.lock(), there);
    std::fs::remove_file(file).expect("removed");
}

#[tokio::test]
async fn a_newer_token_of_a_service_account_replaces_the_one_before() {
    let (address, asked) = start().await;
    let context = with_variables(&[("AZURE_AUTHORITY_HOST", &address)]);
    let text = format!("serverAddress={address};query=up;threshold=1");
    let refused = trigger(&context, "prometheus", &text, of_workload("wrong")).expect("a trigger");
    let polled = poll(&*refused).await;
    assert!(
        polled.ends_with("refuses the credentials: it answers 401: invalid_client"),
        "{polled}"
    );
    assert_eq!(poll(&*refused).await, polled, "it is believed for a while");
    assert_eq!(asked.lock().len(), 1);
    let newer = trigger(&context, "prometheus", &text, of_workload("token-of-web"));
    let newer = newer.expect("a trigger");
    assert_eq!(context.servers(), 2, "they share the server, and the one that gives tokens");
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(11)).await;
    tokio::time::resume();
    assert_eq!(poll(&*newer).await, "3");
    let there = "/t%2F..%2Fx/oauth2/v2.0/token web token-of-web https://prometheus.monitor.azure.com/.default";
    assert_eq!(asked.lock()[1], there);
}

#[test]
fn tokens_are_sent_where_they_belong_only() {
    const OWN: [(&str, &str); 3] = [
        ("AZURE_CLIENT_ID", "own"),
        ("AZURE_TENANT_ID", "home"),
        ("AZURE_FEDERATED_TOKEN_FILE", "/nowhere"),
    ];
    let at = |authority: &str, identity: AzureIdentity| AzureIdentity {
        authority: Some(authority.to_owned()),
        ..identity
    };
    const PROMETHEUS: &str =
        "query=up;threshold=1;serverAddress=https://x.prometheus.monitor.azure.com";
    const OTHER: &str =
        "query=up;threshold=1;serverAddress=https://prometheus.monitor.azure.com.evil.test";
    const PLAIN: &str = "query=up;threshold=1;serverAddress=http://x.prometheus.monitor.azure.com";
    const RABBIT: &str = "queueName=q;auth.workloadIdentityResource=api://r";
    const DATABASE: &str = "query=q;targetQueryValue=1;port=1;userName=u;dbName=d";
    let not_of_cloud = "serverAddress is none of the cloud whose token of the controller";
    let none = "podIdentity.identityAuthorityHost of a workload is none of Azure's";
    for (kind, text, identity, expected) in [
        ("prometheus", PROMETHEUS.to_owned(), of_controller(), "ok"),
        ("prometheus", OTHER.to_owned(), of_controller(), not_of_cloud),
        ("prometheus", PLAIN.to_owned(), of_controller(), not_of_cloud),
        ("prometheus", OTHER.to_owned(), of_workload("t"), "ok"),
        (
            "prometheus",
            PROMETHEUS.to_owned(),
            at("https://login.evil.test", of_workload("t")),
            none,
        ),
        (
            "prometheus",
            PROMETHEUS.to_owned(),
            at("https://login.microsoftonline.us/", of_workload("t")),
            "ok",
        ),
        ("prometheus", PROMETHEUS.to_owned(), at("https://login.test", of_controller()), "ok"),
        (
            "prometheus",
            PROMETHEUS.to_owned(),
            at("http://login.test", of_controller()),
            "it does not begin with https://",
        ),
        (
            "prometheus",
            format!("{PROMETHEUS};cloud=Private;azureManagedPrometheusResourceURL=https://x"),
            of_controller(),
            "a trigger may not choose for which resource",
        ),
        (
            "prometheus",
            format!("{PROMETHEUS};cloud=Moon"),
            of_controller(),
            "invalid cloud environment Moon",
        ),
        (
            "prometheus",
            format!("{PROMETHEUS};authModes=bearer;auth.bearerToken=t"),
            of_controller(),
            "pod identity cannot be enabled with other auth types",
        ),
        ("rabbitmq", format!("{RABBIT};auth.host=https://h/v"), of_controller(), "ok"),
        (
            "rabbitmq",
            format!("{RABBIT};host=https://h/v"),
            of_controller(),
            "host must be given by the authentication",
        ),
        (
            "rabbitmq",
            format!("{RABBIT};auth.host=https://h/v;unsafeSsl=true"),
            of_controller(),
            "only sent to servers whose certificates are verified",
        ),
        ("rabbitmq", format!("{RABBIT};host=https://h/v;unsafeSsl=true"), of_workload("t"), "ok"),
        (
            "rabbitmq",
            format!("{RABBIT};auth.host=amqp://h/v"),
            of_controller(),
            "workload identity is not supported for the AMQP protocol",
        ),
        (
            "postgresql",
            format!("{DATABASE};host=a.postgres.database.azure.com;sslmode=require"),
            of_controller(),
            "ok",
        ),
        (
            "postgresql",
            format!("{DATABASE};host=a.postgres.database.azure.com;sslmode=prefer"),
            of_controller(),
            "a token of Azure is not sent without TLS",
        ),
        (
            "postgresql",
            format!("{DATABASE};host=evil.test;sslmode=require"),
            of_controller(),
            "host is none of Azure's",
        ),
        ("postgresql", format!("{DATABASE};auth.host=db;sslmode=require"), of_controller(), "ok"),
        ("postgresql", format!("{DATABASE};host=db;sslmode=require"), of_workload("t"), "ok"),
        (
            "redis",
            "address=a:1;listName=l".to_owned(),
            of_controller(),
            "podIdentity azure-workload is not supported for triggers of type redis",
        ),
    ] {
        let found = trigger(&with_variables(&OWN), kind, &text, identity.clone());
        let found = found.map_or_else(|problem| problem, |_| "ok".to_owned());
        assert!(found.contains(expected), "{kind} {text} {identity:?}: {found}");
    }
    for (left_out, expected) in [
        ("AZURE_CLIENT_ID", "set podIdentity.identityId, or give the controller AZURE_CLIENT_ID"),
        (
            "AZURE_TENANT_ID",
            "set podIdentity.identityTenantId, or give the controller AZURE_TENANT_ID",
        ),
        ("AZURE_FEDERATED_TOKEN_FILE", "the controller has no identity at Azure: "),
    ] {
        let variables: Vec<_> = OWN.into_iter().filter(|(name, _)| *name != left_out).collect();
        let context = with_variables(&variables);
        let found = trigger(&context, "prometheus", PROMETHEUS, of_controller()).map(drop);
        assert!(found.expect_err(left_out).contains(expected));
    }
}
