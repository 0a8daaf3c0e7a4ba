//! Identities against servers in place of Amazon's: one gives keys for roles, one only answers who has them.

use super::sts::lent;
use crate::context::Context;
use crate::identity::{AwsIdentity, Identity};
use crate::tests::{context, soon, spec_of};
use crate::{Scaler, Secret, connect, parse};
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::routing::any;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// What must not be seen.
const PLANTED: &str = "hunter2";
const ROLE: &str = "arn:aws:iam::012345678912:role/queues";
const OTHER: &str = "arn:aws:iam::012345678912:role/other";

/// What was asked for, and how the answers are.
#[derive(Default)]
struct Amazon {
    /// Actions with their roles, and who asked SQS.
    asked: Mutex<Vec<String>>,
    /// How many keys were given; each has a number.
    given: Mutex<u32>,
    /// Keys of smaller numbers are refused.
    valid_from: Mutex<u32>,
    expiration: Mutex<String>,
}

type Answer = (StatusCode, String);

fn refusal(status: u16, code: &str) -> Answer {
    let status = StatusCode::from_u16(status).expect("a status");
    (
        status,
        format!(
            "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>no, {PLANTED}!</Message></Error></ErrorResponse>"
        ),
    )
}

async fn sts(State(amazon): State<Arc<Amazon>>, headers: HeaderMap, body: String) -> Answer {
    let form: HashMap<String, String> =
        form_urlencoded::parse(body.as_bytes()).into_owned().collect();
    let field = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    assert_eq!((field("Version"), field("RoleSessionName")), ("2011-06-15", "podscale"));
    let header =
        |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    assert!(header("content-type").starts_with("application/x-www-form-urlencoded"));
    let (action, role) = (field("Action"), field("RoleArn"));
    let who = match action {
        "AssumeRoleWithWebIdentity" => {
            assert_eq!(header("authorization"), "", "a token is all that is needed");
            match field("WebIdentityToken") {
                "token-of-controller" if role == ROLE => "controller".to_owned(),
                "token-of-web" => "web".to_owned(),
                _ => return refusal(403, "AccessDenied"),
            }
        }
        "AssumeRole" => {
            let scope = "/20261116/eu-central-1/sts/aws4_request, SignedHeaders=content-type;host;x-amz-date";
            let authorization = header("authorization");
            assert!(authorization.contains(scope), "{authorization}");
            let id = authorization.split(['=', '/']).nth(1).unwrap_or_default();
            format!("{id} {}", field("ExternalId")).trim().to_owned()
        }
        other => panic!("{other} is not asked for"),
    };
    let name = role.rsplit('/').next().unwrap_or_default();
    amazon.asked.lock().push(format!("{action} {name} by {who}"));
    let number = {
        let mut given = amazon.given.lock();
        *given += 1;
        *given
    };
    let expiration = amazon.expiration.lock().clone();
    let xml = format!(
        "<{action}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><{action}Result><Credentials>\
         <AccessKeyId>KEY{number}</AccessKeyId><SecretAccessKey>{PLANTED}</SecretAccessKey>\
         <SessionToken>session-{number}-{PLANTED}</SessionToken><Expiration>{expiration}</Expiration>\
         </Credentials></{action}Result></{action}Response>"
    );
    (StatusCode::OK, xml)
}

async fn sqs(State(amazon): State<Arc<Amazon>>, headers: HeaderMap) -> Answer {
    let header =
        |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let authorization = header("authorization");
    assert!(authorization.contains("/eu-central-1/sqs/aws4_request"), "{authorization}");
    let id = authorization.split(['=', '/']).nth(1).unwrap_or_default().to_owned();
    amazon.asked.lock().push(format!("queue by {id}"));
    if let Some(number) =
        id.strip_prefix("KEY").map(|number| number.parse::<u32>().expect("a number"))
    {
        assert_eq!(header("x-amz-security-token"), format!("session-{number}-{PLANTED}"));
        if number < *amazon.valid_from.lock() {
            let body = format!(r#"{{"__type":"ExpiredTokenException","message":"{PLANTED}"}}"#);
            return (StatusCode::FORBIDDEN, body);
        }
    }
    (StatusCode::OK, r#"{"Attributes":{"ApproximateNumberOfMessages":"7"}}"#.to_owned())
}

async fn prometheus(State(amazon): State<Arc<Amazon>>, headers: HeaderMap, uri: Uri) -> Answer {
    let header =
        |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let authorization = header("authorization");
    assert!(authorization.contains("/eu-central-1/aps/aws4_request"), "{authorization}");
    assert_eq!(header("x-amz-date"), "20261116T070000Z");
    assert_eq!(uri.query(), Some("namespace=a%20b&query=up"));
    let id = authorization.split(['=', '/']).nth(1).unwrap_or_default().to_owned();
    amazon.asked.lock().push(format!("query by {id}"));
    let number = id.strip_prefix("KEY").map(|number| number.parse::<u32>().expect("a number"));
    if number.is_some_and(|number| number < *amazon.valid_from.lock()) {
        let problem = format!("The security token included in the request is expired {PLANTED}");
        return (StatusCode::FORBIDDEN, format!(r#"{{"message":"{problem}"}}"#));
    }
    const ANSWER: &str = r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"7"]}]}}"#;
    (StatusCode::OK, ANSWER.to_owned())
}

/// Starts all; gives a controller with these variables, and what is asked for.
async fn start(variables: &[(&str, &str)]) -> (Context, String, Arc<Amazon>) {
    let amazon = Arc::new(Amazon::default());
    *amazon.expiration.lock() = "2026-11-16T08:00:00Z".to_owned();
    let router = Router::new().route("/sts", any(sts)).route("/sqs", any(sqs));
    let router = router.route("/workspaces/ws-1/api/v1/query", any(prometheus));
    let router = router.with_state(Arc::clone(&amazon));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let mut known: BTreeMap<String, Secret> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), Secret::from(*value))).collect();
    known.insert("AWS_ENDPOINT_URL_STS".to_owned(), format!("{address}/sts").into());
    let mut context = context();
    context.freshness = std::time::Duration::ZERO;
    context.http_timeout = std::time::Duration::from_secs(60);
    context.variables = Arc::new(move |name| known.get(name).cloned());
    context.clock = Arc::new(|| "2026-11-16T07:00:00Z".parse().expect("a time"));
    (context, address, amazon)
}

fn queue(context: &Context, address: &str, identity: &AwsIdentity) -> Box<dyn Scaler> {
    let text = format!("queueURL=orders;awsRegion=eu-central-1;awsEndpoint={address}/sqs");
    let mut spec = spec_of("aws-sqs-queue", &text);
    spec.identity = Some(Identity::Aws(identity.clone()));
    let parsed = parse(&spec).unwrap_or_else(|errors| panic!("{errors}"));
    let shown = format!("{parsed:?}");
    assert!(!shown.contains("token-of"), "{shown}");
    connect(parsed, context).unwrap_or_else(|error| panic!("{error}"))
}

/// The value of a trigger, or why there is none.
async fn poll(queue: &dyn Scaler) -> String {
    let polled = match queue.poll(soon() + std::time::Duration::from_secs(50)).await {
        Ok(values) => values[0].value.to_string(),
        Err(error) => error.to_string(),
    };
    assert!(!polled.contains(PLANTED), "{polled}");
    polled
}

fn controller(role: Option<&str>, external_id: Option<&str>) -> AwsIdentity {
    let (role, external_id) = (role.map(str::to_owned), external_id.map(str::to_owned));
    AwsIdentity::Controller { role, external_id }
}

fn workload(token: &str) -> AwsIdentity {
    let (role, account) = (OTHER.to_owned(), "shop/web".to_owned());
    AwsIdentity::Workload { role, account, token: token.into() }
}

/// A file with the controller's token.
fn token_file() -> String {
    let name = format!("podscale-token-{}-{:?}", std::process::id(), std::thread::current().id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, "token-of-controller\n").expect("written");
    path.display().to_string()
}

const OWN_KEYS: [(&str, &str); 2] =
    [("AWS_ACCESS_KEY_ID", "OWN"), ("AWS_SECRET_ACCESS_KEY", PLANTED)];

#[tokio::test]
async fn each_identity_gets_its_keys_as_amazon_gives_them() {
    let file = token_file();
    let by_token = [("AWS_WEB_IDENTITY_TOKEN_FILE", &*file), ("AWS_ROLE_ARN", ROLE)];
    for (variables, identity, expected) in [
        (&OWN_KEYS[..], controller(None, None), "queue by OWN"),
        (&OWN_KEYS, controller(Some(OTHER), None), "AssumeRole other by OWN, queue by KEY1"),
        (&OWN_KEYS, controller(Some(OTHER), Some("x")), "AssumeRole other by OWN x, queue by KEY1"),
        (
            &by_token,
            controller(None, None),
            "AssumeRoleWithWebIdentity queues by controller, queue by KEY1",
        ),
        (
            &by_token,
            controller(Some(ROLE), None),
            "AssumeRoleWithWebIdentity queues by controller, queue by KEY1",
        ),
        // This one does not trust the token, but whom it stands for.
        (
            &by_token,
            controller(Some(OTHER), None),
            "AssumeRoleWithWebIdentity queues by controller, AssumeRole other by KEY1, queue by KEY2",
        ),
        (
            &by_token,
            controller(Some(ROLE), Some("x")),
            "AssumeRoleWithWebIdentity queues by controller, AssumeRole queues by KEY1 x, queue by KEY2",
        ),
        (&[], workload("token-of-web"), "AssumeRoleWithWebIdentity other by web, queue by KEY1"),
    ] {
        let (context, address, amazon) = start(variables).await;
        let queue = queue(&context, &address, &identity);
        assert_eq!(poll(&*queue).await, "7", "{identity:?}");
        assert_eq!(amazon.asked.lock().join(", "), expected, "{identity:?}");
    }
    std::fs::remove_file(file).expect("removed");
}

#[tokio::test]
async fn keys_are_shared_and_kept_until_they_expire_or_are_refused() {
    let (mut context, address, amazon) = start(&OWN_KEYS).await;
    let now = Arc::new(Mutex::new("2026-11-16T07:00:00Z".to_owned()));
    let clock = Arc::clone(&now);
    context.clock = Arc::new(move || clock.lock().parse().expect("a time"));
    let role = controller(Some(OTHER), None);
    let queues = [queue(&context, &address, &role), queue(&context, &address, &role)];
    let roles =
        || amazon.asked.lock().iter().filter(|asked| asked.starts_with("AssumeRole")).count();
    for queue in queues.iter().chain(&queues) {
        assert_eq!(poll(&**queue).await, "7");
    }
    assert_eq!(roles(), 1, "{:?}", amazon.asked.lock());
    // A moment before they expire there are new ones.
    *now.lock() = "2026-11-16T07:59:00Z".to_owned();
    *amazon.expiration.lock() = "2026-11-16T09:00:00Z".to_owned();
    assert_eq!(poll(&*queues[0]).await, "7");
    assert_eq!(roles(), 2);
    // Those are taken back.
    *amazon.valid_from.lock() = 3;
    let refused = poll(&*queues[0]).await;
    assert!(
        refused.ends_with("refuses the credentials: it answers 403 ExpiredTokenException"),
        "{refused}"
    );
    assert_eq!(poll(&*queues[0]).await, "7");
    assert_eq!(roles(), 3);
    // One that refuses all of them does not have new ones fetched all the time.
    *amazon.valid_from.lock() = u32::MAX;
    for _ in 0..3 {
        poll(&*queues[0]).await;
    }
    assert_eq!(roles(), 3);
}

#[tokio::test]
async fn queries_to_prometheus_are_signed_anew_when_keys_have_expired() {
    let (context, address, amazon) = start(&OWN_KEYS).await;
    let text = format!(
        "serverAddress={address}/workspaces/ws-1;query=up;namespace=a b;threshold=1;awsRegion=eu-central-1"
    );
    let mut spec = spec_of("prometheus", &text);
    spec.identity = Some(Identity::Aws(controller(Some(OTHER), None)));
    let parsed = parse(&spec).unwrap_or_else(|errors| panic!("{errors}"));
    let queries = connect(parsed, &context).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(poll(&*queries).await, "7");
    assert_eq!(poll(&*queries).await, "7");
    *amazon.valid_from.lock() = 2;
    assert_eq!(poll(&*queries).await, "7");
    let expected = "AssumeRole other by OWN, query by KEY1, query by KEY1, query by KEY1, AssumeRole other by OWN, \
                    query by KEY2";
    assert_eq!(amazon.asked.lock().join(", "), expected);
}

#[tokio::test]
async fn a_newer_token_of_a_service_account_replaces_the_one_before() {
    let (context, address, amazon) = start(&[]).await;
    *amazon.expiration.lock() = "2026-11-16T07:00:01Z".to_owned();
    let before = queue(&context, &address, &workload("token-of-web"));
    assert_eq!(poll(&*before).await, "7");
    let after = queue(&context, &address, &workload("token-that-is-wrong"));
    assert_eq!(context.servers(), 2, "they share the queue's server, and the one that gives keys");
    for queue in [before, after] {
        let refused = poll(&*queue).await;
        assert!(
            refused.ends_with("refuses the credentials: it answers 403 AccessDenied"),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn who_has_no_identity_is_told_so() {
    let gone = [("AWS_WEB_IDENTITY_TOKEN_FILE", "/nowhere/token"), ("AWS_ROLE_ARN", ROLE)];
    for (variables, expected) in [
        (&[][..], "the controller has no identity at Amazon: "),
        (&gone[1..], "the controller has no identity at Amazon: "),
        (&gone, "AWS_WEB_IDENTITY_TOKEN_FILE of the controller: "),
    ] {
        let (context, address, amazon) = start(variables).await;
        let queue = queue(&context, &address, &controller(None, None));
        let found = poll(&*queue).await;
        assert!(found.starts_with(expected), "{found}");
        assert!(amazon.asked.lock().is_empty());
    }
}

#[test]
fn tokens_are_sent_to_amazon_only() {
    let connected = |region: &str, variables: &'static [(&str, &str)]| {
        let mut context = context();
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        context.variables = Arc::new(move |name| find(name).map(|(_, value)| (*value).into()));
        let text = format!("queueURL=orders;awsRegion={region};awsEndpoint=http://localhost:1");
        let mut spec = spec_of("aws-sqs-queue", &text);
        spec.identity = Some(Identity::Aws(controller(None, None)));
        let parsed = parse(&spec).expect("a trigger");
        connect(parsed, &context).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(connected("eu-central-1", &[]), Ok(()));
    for region in ["evil.test/", "a@evil.test", "x?", "evil.test#"] {
        let refused = connected(region, &[]).expect_err("no region");
        assert!(refused.contains("is no region of Amazon"), "{refused}");
    }
    // The controller's own region counts.
    assert_eq!(connected("evil.test/", &[("AWS_REGION", "eu-west-1")]), Ok(()));
    let elsewhere = connected("eu-west-1", &[("AWS_ENDPOINT_URL_STS", "nowhere")]);
    assert!(elsewhere.expect_err("no address").contains("AWS_ENDPOINT_URL_STS"));
}

#[test]
fn only_whole_answers_have_keys() {
    let answer = |fields: &str| format!("<R xmlns=\"a\"><Credentials>{fields}</Credentials></R>");
    let whole = "<AccessKeyId>k</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>\
                 <Expiration>2026-11-16T08:00:00Z</Expiration>";
    let (keys, until) = lent(&answer(whole)).expect("keys");
    assert_eq!((keys.id.as_str(), keys.secret.expose()), ("k", "s"));
    assert_eq!(until.to_string(), "2026-11-16T08:00:00Z");
    for part in ["<AccessKeyId>k", "<SecretAccessKey>s", "<SessionToken>t", "2026-11-16T08:00:00Z"]
    {
        let empty = part.find('>').map_or("", |end| &part[..=end]);
        assert!(lent(&answer(&whole.replace(part, empty))).is_none(), "{part}");
    }
    for text in ["", "<html>", "{}", "<R/>"] {
        assert!(lent(text).is_none(), "{text}");
    }
}
