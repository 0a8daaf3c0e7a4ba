use super::*;
use crate::context::PodPlace;
use crate::tests::{Empty, context, outcome, soon, spec_of};
use crate::{connect, parse};
use axum::Router;
use axum::extract::Query;
use axum::http::HeaderMap as Headers;
use axum::routing::get;
use podscale_api::Selector;
use std::collections::BTreeMap;
use std::net::SocketAddr;

#[test]
fn fields_are_checked_in_the_words_of_keda() {
    const CONTEXT: &str = "error parsing metric API metadata: ";
    const GOOD: &str = "url=http://a.b:8080/x;valueLocation=a.b";
    for (text, expected) in [
        (format!("{GOOD};targetValue=5"), "s0-metric-api-a-b 5 0"),
        (
            format!("{GOOD};targetValue=5.5;activationTargetValue=2;format=yaml"),
            "s0-metric-api-a-b 5.5 2",
        ),
        (GOOD.to_owned(), "no targetValue given in metadata"),
        (
            "targetValue=1".to_owned(),
            "error parsing metrics API metadata: missing required parameter \"url\" in [triggerMetadata]\n\
             missing required parameter \"valueLocation\" in [triggerMetadata]",
        ),
        (
            format!("{GOOD};targetValue=ten"),
            "error parsing metrics API metadata: unable to set param \"targetValue\" value \"ten\": unable to \
             unmarshal to field type float64: invalid character 'e' in literal true (expecting 'r')",
        ),
        (
            format!("{GOOD};targetValue=1;format=csv"),
            "error parsing metrics API metadata: parameter \"format\" value \"csv\" must be one of \
             [prometheus json xml yaml]",
        ),
        (
            format!("{GOOD};targetValue=1;authMode=custom"),
            "error parsing metrics API metadata: auth mode \"custom\" is not supported by this scaler; \
             supported modes: [apiKey basic tls bearer]",
        ),
        (
            "url=http://a;valueLocation=@upper;targetValue=1".to_owned(),
            "error parsing metrics API metadata: parameter \"valueLocation\" cannot be used: @upper is not \
             supported; known are @this, @keys, @values, @reverse, @flatten, @join, @tostr, @fromstr, @group, @valid, \
             @ugly, @pretty, @dig",
        ),
    ] {
        let found = outcome("metrics-api", &text);
        assert_eq!(found.strip_prefix(CONTEXT).unwrap_or(&found), expected, "{text}");
    }
}

#[test]
fn numbers_are_found_in_every_format() {
    const JSON: &str = r#"{"components":[{"id":"82","tasks":32,"str":"64","k":"1k"}],"on":true}"#;
    const YAML: &str = "a:\n  b: 5\n  list: [1, 2.5]\n  q: 3Ki\n  t: {}\n";
    const XML: &str = "<r><a n='7'><b>4</b><b>5</b></a><c>1.5</c><d>x</d></r>";
    const TEXT: &str =
        "# TYPE q gauge\nq{name=\"a\",x=\"1\"} 3\nq{name=\"b\"} 4\nq{name=\"b\",x=\"2\"} 5\n";
    for (format, body, location, expected) in [
        ("json", JSON, "components.0.tasks", "32"),
        ("json", JSON, "components.0.str", "64"),
        ("json", JSON, "components.0.k", "1000"),
        ("json", JSON, "components.#", "1"),
        (
            "json",
            JSON,
            "on",
            "valueLocation \"on\" must point to a numeric value or a string parseable as a Quantity, got True",
        ),
        (
            "json",
            JSON,
            "none",
            "valueLocation \"none\" must point to a numeric value or a string parseable as a Quantity, got Null",
        ),
        (
            "json",
            JSON,
            "components",
            "valueLocation \"components\" must point to a numeric value or a string parseable as a Quantity, got JSON",
        ),
        (
            "json",
            "{",
            "a",
            "the answer is not JSON: EOF while parsing an object at line 1 column 1",
        ),
        ("yaml", YAML, "a.b", "5"),
        ("yaml", YAML, "a.list.1", "2.5"),
        ("yaml", YAML, "a.q", "3072"),
        ("yaml", YAML, "a.none", "key 'none' not found in path 'a.none'"),
        ("yaml", YAML, "a.t", "path 'a.t' does not lead to a value"),
        ("xml", XML, "a.b", "4"),
        ("xml", XML, "r.a.b", "4"),
        ("xml", XML, "c", "1.5"),
        ("xml", XML, "a.@n", "7"),
        (
            "xml",
            XML,
            "d",
            "valueLocation \"d\" points to a string that is not parseable as a Quantity",
        ),
        ("xml", XML, "none", "path 'none' does not lead to a value"),
        ("prometheus", TEXT, "q", "3"),
        ("prometheus", TEXT, "q{name=\"b\"}", "4"),
        ("prometheus", TEXT, "q{name=\"b\",x=\"2\"}", "5"),
        ("prometheus", TEXT, "q{name!=\"a\",x=~\"[0-9]\"}", "5"),
        ("prometheus", TEXT, "{__name__=\"q\",x=\"2\"}", "5"),
        ("prometheus", TEXT, "q{name=\"c\"}", "value q{name=\"c\"} not found"),
        ("prometheus", TEXT, "r", "metric 'r' not found"),
        (
            "prometheus",
            "q 1 2 3",
            "q",
            "prometheus format parsing error: line 1: something follows the timestamp",
        ),
    ] {
        let read = Location::parse(format, location).expect(location);
        let found = match read.find(body.as_bytes(), location) {
            Ok(value) => value.to_string(),
            Err(problem) => problem,
        };
        assert_eq!(found, expected, "{format} {location}");
    }
    for wrong in ["q{", "q{a}", "q{a=b}", "{}", "q{a=~\"(\"}"] {
        assert!(Location::parse("prometheus", wrong).is_err(), "{wrong}");
    }
}

/// What came with a request, or the answer of another path.
async fn api() -> SocketAddr {
    let seen = |headers: Headers, Query(query): Query<BTreeMap<String, String>>| async move {
        let header =
            |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or("-").to_owned();
        let right = header("authorization") == "Basic dTpw"
            || header("authorization") == "Bearer t"
            || header("x-api-key") == "k"
            || header("x-mine") == "k"
            || query.get("api_key").is_some_and(|key| key == "k&");
        if right { Ok("{\"n\": 5}") } else { Err(StatusCode::UNAUTHORIZED) }
    };
    let router = Router::new()
        .route("/seen", get(seen))
        .route(
            "/moved",
            get(|| async { axum::response::Redirect::permanent("http://other/?key=secret") }),
        )
        .route("/busy", get(|| async { (StatusCode::SERVICE_UNAVAILABLE, "too  much\nto do") }))
        .route("/large", get(|| async { "x".repeat(9 << 20) }))
        .route("/never", get(std::future::pending::<&str>))
        .route("/n", get(|| async { "{\"n\": 2}" }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

async fn polled(text: &str, context: &Context) -> String {
    let parsed = parse(&spec_of("metrics-api", text)).unwrap_or_else(|e| panic!("{text}: {e}"));
    let polled = match connect(parsed, context) {
        Ok(scaler) => scaler.poll(soon()).await,
        Err(error) => Err(error),
    };
    match polled {
        Ok(values) => format!("{} {} {}", values[0].metric_name, values[0].value, values[0].active),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn requests_carry_what_the_mode_says() {
    let address = api().await;
    for (more, expected) in [
        ("authMode=basic;auth.username=u;auth.password=p", "s0-metric-api-n 5 true"),
        ("authMode=bearer;auth.token=t", "s0-metric-api-n 5 true"),
        ("authMode=apiKey;auth.apiKey=k", "s0-metric-api-n 5 true"),
        ("authMode=apiKey;auth.apiKey=k;keyParamName=X-Mine", "s0-metric-api-n 5 true"),
        ("authMode=apiKey;auth.apiKey=k&;method=query", "s0-metric-api-n 5 true"),
        ("authMode=bearer;auth.token=t;activationTargetValue=5", "s0-metric-api-n 5 false"),
        ("authMode=bearer;auth.token=hunter2", "refuses the credentials: it answers 401"),
        ("", "refuses the credentials: it answers 401"),
    ] {
        let text = format!("url=http://{address}/seen;valueLocation=n;targetValue=1;{more}");
        let found = polled(&text, &context()).await;
        let found = found.strip_prefix(&format!("http://{address} ")).unwrap_or(&found).to_owned();
        assert_eq!(found, expected, "{more}");
    }
    let text = format!("url=http://u:p@{address}/seen;valueLocation=n;targetValue=1");
    assert_eq!(
        polled(&text, &context()).await,
        "s0-metric-api-n 5 true",
        "credentials in the address"
    );
}

#[tokio::test]
async fn servers_that_give_no_value_say_why() {
    let address = api().await;
    for (path, expected) in [
        ("/moved", "answers 308 and names another address, \"http://other/\": use that one"),
        ("/busy", "cannot be reached: it answers 503: too much to do"),
        ("/large", "answers more than 8388608 bytes"),
        ("/never", "did not answer in time"),
        ("/none", "gives no value: it answers 404"),
    ] {
        let text =
            format!("url=http://{address}{path};valueLocation=n;targetValue=1;timeout=300ms");
        let found = polled(&text, &context()).await;
        assert_eq!(found, format!("http://{address} {expected}"), "{path}");
    }
    let closed = "url=http://127.0.0.1:1/;valueLocation=n;targetValue=1";
    let found = polled(closed, &context()).await;
    assert!(found.starts_with("http://127.0.0.1:1 cannot be reached: "), "{found}");
}

/// A cluster with one Service.
struct Service(Vec<Endpoint>);

impl Cluster for Service {
    fn pods<'a>(
        &'a self,
        namespace: &'a str,
        selector: &'a Selector,
    ) -> BoxFuture<'a, Result<Vec<PodPlace>, String>> {
        Empty.pods(namespace, selector)
    }

    fn endpoints<'a>(
        &'a self,
        namespace: &'a str,
        service: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Endpoint>, String>> {
        assert_eq!((namespace, service), ("shop", "web"));
        Box::pin(async { Ok(self.0.clone()) })
    }
}

#[tokio::test]
async fn all_endpoints_of_a_service_are_asked() {
    let port = api().await.port();
    // The whole of 127.0.0.0/8 is the loopback, but only one address of it is listened on.
    let endpoint = |address: &str| Endpoint { address: address.to_owned(), ports: vec![port] };
    for (addresses, aggregation, expected) in [
        (&["127.0.0.1"][..], "average", "s0-metric-api-n 2 true"),
        (&["127.0.0.1", "127.0.0.9"], "sum", "s0-metric-api-n 2 true"),
        (
            &["127.0.0.9"],
            "sum",
            "error requesting metrics endpoint: could not get any metric successfully from the 1 provided \
             endpoints",
        ),
        (
            &[],
            "sum",
            "error requesting metrics endpoint: no endpoints URLs were given for the service name",
        ),
    ] {
        let endpoints = addresses.iter().map(|address| endpoint(address)).collect();
        let context = Context::new(Arc::new(Service(endpoints)));
        let text = format!(
            "url=http://web.shop.svc:{port}/n;valueLocation=n;targetValue=1;aggregationType={aggregation};\
             aggregateFromKubeServiceEndpoints=true"
        );
        assert_eq!(polled(&text, &context).await, expected, "{addresses:?}");
    }
}

#[test]
fn numbers_of_endpoints_become_one() {
    use Aggregation::{Average, Max, Min, Sum};
    let values = [3.0, 1.0, 5.0];
    for (aggregation, expected) in [(Sum, 9.0), (Average, 3.0), (Max, 5.0), (Min, 1.0)] {
        assert_eq!(aggregate(aggregation, &values), Some(expected), "{aggregation:?}");
        assert_eq!(aggregate(aggregation, &[]), None);
    }
    let address = Address::parse("https://web.shop/x?y=1").expect("an address");
    for (found, ports, expected) in [
        ("10.0.0.1", vec![443], "https://10.0.0.1:443/x?y=1"),
        ("10.0.0.1", vec![8443], "https://10.0.0.1/x?y=1"),
        ("fd00::1", vec![443], "https://[fd00::1]:443/x?y=1"),
    ] {
        assert_eq!(endpoint(&address, &Endpoint { address: found.to_owned(), ports }), expected);
    }
}
