//! Collectors at fault; the real one is in `tests/run/telemetry.rs`.

use super::*;
use crate::telemetry::settings::settings;
use axum::Router;
use axum::extract::State;
use parking_lot::Mutex;

/// What a collector at fault does with one request after the other, the last one for ever.
#[derive(Clone)]
enum Act {
    Answer(u16, Option<&'static str>, Vec<u8>),
    Silence,
}

struct Collector {
    acts: Vec<Act>,
    seen: Mutex<Vec<(HeaderMap, Bytes)>>,
}

async fn act(
    State(collector): State<Arc<Collector>>,
    headers: HeaderMap,
    body: Bytes,
) -> axum::http::Response<axum::body::Body> {
    let place = {
        let mut seen = collector.seen.lock();
        seen.push((headers, body));
        seen.len().min(collector.acts.len()) - 1
    };
    match collector.acts[place].clone() {
        Act::Silence => std::future::pending().await,
        Act::Answer(code, pause, body) => {
            let answer = axum::http::Response::builder().status(code);
            let answer = match pause {
                Some(pause) => answer.header(RETRY_AFTER, pause),
                None => answer,
            };
            answer.body(body.into()).expect("an answer")
        }
    }
}

/// A collector that acts so, and its client.
async fn collector(acts: Vec<Act>, variables: &[(&str, &str)]) -> (Arc<Collector>, Sender) {
    let collector = Arc::new(Collector { acts, seen: Mutex::default() });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let router = Router::new().fallback(act).with_state(Arc::clone(&collector));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (collector, sender(&format!("http://{address}"), variables))
}

fn sender(url: &str, variables: &[(&str, &str)]) -> Sender {
    let get = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let settings = settings(Some(url), get).expect("settings");
    Sender::new(settings.traces.expect("traces").0).expect("a sender")
}

const SHORT: (&str, &str) = ("OTEL_EXPORTER_OTLP_TIMEOUT", "400");

#[tokio::test]
async fn requests_are_retried_only_where_that_can_help() {
    let well = || Act::Answer(200, None, Vec::new());
    let refused = |code| Err(SendError::Refused(StatusCode::from_u16(code).expect("a code")));
    let partly = ExportTraceServiceResponse {
        partial_success: Some(
            opentelemetry_proto::tonic::collector::trace::v1::ExportTracePartialSuccess {
                rejected_spans: 3,
                error_message: "too old".to_owned(),
            },
        ),
    };
    let rejected = Accepted { rejected: 3, message: "too old".to_owned() };
    let cases: [(Vec<Act>, &[(&str, &str)], Result<Accepted, SendError>, usize); 7] = [
        (vec![well()], &[], Ok(Accepted::default()), 1),
        (vec![Act::Answer(503, Some("0"), Vec::new()), well()], &[], Ok(Accepted::default()), 2),
        (vec![Act::Answer(429, Some("60"), Vec::new())], &[], refused(429), 1),
        (vec![Act::Answer(400, None, b"nonsense".to_vec())], &[], refused(400), 1),
        (vec![Act::Answer(200, None, partly.encode_to_vec())], &[], Ok(rejected), 1),
        (vec![Act::Answer(200, None, b"\xff\xff".to_vec())], &[], Ok(Accepted::default()), 1),
        (vec![Act::Silence], &[SHORT], Err(SendError::Late(Duration::from_millis(400))), 1),
    ];
    for (acts, variables, expected, asked) in cases {
        let (collector, sender) = collector(acts, variables).await;
        assert_eq!(sender.send(b"spans".to_vec()).await, expected);
        assert_eq!(collector.seen.lock().len(), asked, "{expected:?}");
    }
}

#[tokio::test]
async fn what_is_sent_can_be_read() {
    use std::io::Read;
    let variables = [
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20x"),
    ];
    let (collector, sender) = collector(vec![Act::Answer(200, None, Vec::new())], &variables).await;
    sender.send(vec![7; 1000]).await.expect("accepted");
    let (headers, body) = collector.seen.lock().remove(0);
    for (name, value) in [
        ("content-type", "application/x-protobuf"),
        ("content-encoding", "gzip"),
        ("authorization", "Bearer x"),
    ] {
        assert_eq!(headers[name], value);
    }
    let mut read = Vec::new();
    flate2::read::GzDecoder::new(&body[..]).read_to_end(&mut read).expect("gzip");
    assert_eq!(read, [7; 1000]);
}

#[tokio::test]
async fn a_collector_that_is_not_there_is_named_with_the_cause() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    let error = sender(&url, &[SHORT]).send(Vec::new()).await.expect_err("nobody");
    assert!(error.to_string().contains("refused"), "{error}");
}

#[test]
fn files_that_are_no_certificates_are_named() {
    let file = std::env::temp_dir().join(format!("podscale-no-certificate-{}", std::process::id()));
    std::fs::write(&file, "nothing").expect("written");
    let name = file.to_str().expect("UTF-8");
    for (path, expected) in [(name, "it holds no certificate"), ("/nonexistent.pem", "")] {
        let get = |variable: &str| {
            (variable == "OTEL_EXPORTER_OTLP_CERTIFICATE").then(|| path.to_owned())
        };
        let settings = settings(Some("https://127.0.0.1:1"), get).expect("settings");
        let error = Sender::new(settings.traces.expect("traces").0).err().expect("refused");
        let beginning = format!("OTEL_EXPORTER_OTLP_CERTIFICATE: cannot use {path}: {expected}");
        assert!(error.to_string().starts_with(&beginning), "{error}");
    }
    std::fs::remove_file(&file).expect("removed");
}
