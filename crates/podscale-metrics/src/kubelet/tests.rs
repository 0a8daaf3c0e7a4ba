use super::*;
use fake::{Authority, Fake, Reply};
use std::path::PathBuf;
use tls::TlsError;

pub(crate) mod fake;

const WELL: &str = "node_cpu_usage_seconds_total 1 1000\nnode_memory_working_set_bytes 1 1000\n";

pub(crate) fn reader(authority: &Authority, token: Token, timeout: Duration) -> KubeletReader {
    let tls = tls::trusting(authority.pem.as_bytes()).unwrap();
    KubeletReader::new(Access { tls, token, timeout })
}

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(200);

fn secret() -> Token {
    Token::fixed("secret").unwrap()
}

/// The error of a first read, as text.
async fn failure(reader: &KubeletReader, kubelet: &Fake) -> String {
    let read = reader.read(&kubelet.target, Form::Exposition).await;
    read.map_or_else(|error| error.to_string(), |_| "none".to_owned())
}

fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("podscale-{name}-{}", std::process::id()))
}

#[tokio::test]
async fn kubelets_are_read_over_one_connection_with_the_token() {
    let authority = Authority::new();
    let script = |path: &str, token: Option<&str>| match (path, token) {
        ("/metrics/resource", Some("secret")) => Reply::ok(WELL),
        (_, Some("secret")) => Reply::Answer(404, Vec::new()),
        _ => Reply::Answer(401, Vec::new()),
    };
    let kubelet = Fake::tls(&authority, "127.0.0.1", script).await;
    let with_token = reader(&authority, secret(), LONG);
    for _ in 0..3 {
        let (scrape, form) = with_token.read(&kubelet.target, Form::Exposition).await.unwrap();
        assert!(!scrape.is_empty() && form == Form::Exposition);
    }
    assert_eq!(kubelet.connections(), 1);
    let without = reader(&authority, Token::none(), LONG);
    assert_eq!(failure(&without, &kubelet).await, "answered 401 Unauthorized");
}

#[tokio::test]
async fn authorities_that_were_replaced_are_read_again() {
    let (old, new) = (Authority::new(), Authority::new());
    let path = file("authorities");
    std::fs::write(&path, &old.pem).unwrap();
    let mut config = tls::insecure().unwrap();
    tls::trust_file(&mut config, path.clone()).unwrap();
    let reader = KubeletReader::new(Access { tls: config, token: Token::none(), timeout: LONG });
    // Each time another kubelet, whose certificate is judged anew.
    for (what, pem, trusted) in [
        ("the old one", &*old.pem, [true, false]),
        ("both", &format!("{}{}", old.pem, new.pem), [true, true]),
        ("the new one", &new.pem, [false, true]),
        ("nonsense", "nothing", [false, true]),
        ("the old one again", &old.pem, [true, false]),
    ] {
        std::fs::write(&path, pem).unwrap();
        for (authority, trusted) in [&old, &new].into_iter().zip(trusted) {
            let kubelet = Fake::tls(authority, "127.0.0.1", |_, _| Reply::ok(WELL)).await;
            let outcome = failure(&reader, &kubelet).await;
            assert_eq!(outcome == "none", trusted, "{what}: {outcome}");
        }
    }
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(tls::trust_file(&mut tls::insecure().unwrap(), path), Err(TlsError::Read(_))));
}

#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_is_made_anew() {
    let authority = Authority::new();
    let last = |_: &str, _: Option<&str>| Reply::Last(WELL);
    let reader = reader(&authority, secret(), LONG);
    for kubelet in [Fake::tls(&authority, "127.0.0.1", last).await, Fake::plain(last).await] {
        for reads in 1..=3 {
            assert_eq!(failure(&reader, &kubelet).await, "none");
            assert_eq!(kubelet.connections(), reads);
        }
    }
}

#[tokio::test]
async fn a_token_that_was_replaced_is_read_again() {
    let authority = Authority::new();
    let wanted = Arc::new(parking_lot::Mutex::new("first"));
    let current = Arc::clone(&wanted);
    let script = move |_: &str, token: Option<&str>| match token {
        Some(token) if token == *current.lock() => Reply::ok(WELL),
        _ => Reply::Answer(401, Vec::new()),
    };
    let kubelet = Fake::tls(&authority, "127.0.0.1", script).await;
    let path = file("token");
    let reader = reader(&authority, Token::file(path.clone()), LONG);
    let missing = failure(&reader, &kubelet).await;
    assert!(missing.starts_with("the token file ") && missing.contains(" cannot be read: "));
    std::fs::write(&path, "first\n").unwrap();
    assert_eq!(failure(&reader, &kubelet).await, "none");
    *wanted.lock() = "other";
    assert_eq!(failure(&reader, &kubelet).await, "answered 401 Unauthorized");
    // As long as the one before, and perhaps within the resolution of the file's time.
    std::fs::write(&path, "other\n").unwrap();
    assert_eq!(failure(&reader, &kubelet).await, "none");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(failure(&reader, &kubelet).await, "none", "a file that is gone counts as it was");
    std::fs::write(&path, "a\nb").unwrap();
    assert_eq!(failure(&reader, &kubelet).await, "none", "so does one with something else in it");
    std::fs::remove_file(&path).unwrap();
}

#[tokio::test]
async fn whoever_is_not_trusted_is_not_read() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let well = |_: &str, _: Option<&str>| Reply::ok(WELL);
    let reader = reader(&authority, secret(), LONG);
    let unknown = Fake::tls(&stranger, "127.0.0.1", well).await;
    let text = failure(&reader, &unknown).await;
    assert!(text.starts_with("cannot be reached: ") && text.contains("certificate"), "{text}");
    let misnamed = Fake::tls(&authority, "127.0.0.2", well).await;
    let text = failure(&reader, &misnamed).await;
    assert!(text.starts_with("cannot be reached: ") && text.contains("not valid for"), "{text}");
    let (tls, token) = (tls::insecure().unwrap(), secret());
    let trusting = KubeletReader::new(Access { tls, token, timeout: LONG });
    assert_eq!(failure(&trusting, &unknown).await, "none");
    assert!(tls::trusting(b"").is_err() && tls::trusting(b"-----BEGIN CERTIFICATE-----").is_err());
    let mut config = tls::insecure().unwrap();
    tls::trust_only(&mut config, authority.pem.as_bytes()).unwrap();
    let strict = KubeletReader::new(Access { tls: config, token: secret(), timeout: LONG });
    assert_ne!(failure(&strict, &unknown).await, "none");
}

#[tokio::test]
async fn answers_that_take_too_long_or_are_too_long_are_cut_off() {
    let authority = Authority::new();
    let impatient = reader(&authority, secret(), SHORT);
    let hanging = Fake::tls(&authority, "127.0.0.1", |_, _| Reply::Hang).await;
    assert_eq!(failure(&impatient, &hanging).await, "no complete answer within 200ms");
    let dripping = Fake::tls(&authority, "127.0.0.1", |_, _| Reply::Drip).await;
    assert_eq!(failure(&impatient, &dripping).await, "no complete answer within 200ms");
    let patient = reader(&authority, secret(), LONG);
    let huge = |_: &str, _: Option<&str>| Reply::Answer(200, vec![b'#'; ANSWER_LIMIT_BYTES + 1]);
    let huge = Fake::tls(&authority, "127.0.0.1", huge).await;
    assert_eq!(failure(&patient, &huge).await, "the answer broke off: length limit exceeded");
}

#[tokio::test]
async fn answers_that_are_something_else_are_errors() {
    let authority = Authority::new();
    let reader = reader(&authority, secret(), LONG);
    for (status, body, expected) in [
        (200, &b"<html>"[..], "the answer has no metrics of a kubelet"),
        (200, b"resource_scrape_error 1\n", "the kubelet could not measure its containers"),
        (200, b"\xff\xfe", "the answer is not text"),
        (403, b"", "answered 403 Forbidden"),
        (503, b"", "answered 503 Service Unavailable"),
        (404, b"", "answered 404 Not Found"),
        (200, b"scrape_error 0\n", "none"),
    ] {
        let script = move |_: &str, _: Option<&str>| Reply::Answer(status, body.to_vec());
        let kubelet = Fake::tls(&authority, "127.0.0.1", script).await;
        assert_eq!(failure(&reader, &kubelet).await, expected);
    }
}

#[tokio::test]
async fn kubelets_of_the_plain_form_are_understood_and_shown_no_token_in_the_clear() {
    let pods = r#"[{"metadata":{"name":"web","namespace":"shop"},"timestamp":"1970-01-01T00:01:40Z","window":"5s",
        "containers":[{"name":"app","resources":{"cpu":250,"memory":1048576}}]}]"#;
    let asked = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let heard = Arc::clone(&asked);
    let kubelet = Fake::plain(move |path, token| {
        heard.lock().push(format!("{path} {token:?}"));
        match path {
            "/pods" => Reply::ok(pods),
            _ => Reply::Answer(404, Vec::new()),
        }
    })
    .await;
    let reader = reader(&Authority::new(), secret(), LONG);
    let (scrape, form) = reader.read(&kubelet.target, Form::Exposition).await.unwrap();
    assert_eq!((scrape.containers(), form), (1, Form::Plain));
    reader.read(&kubelet.target, form).await.unwrap();
    let asked = std::mem::take(&mut *asked.lock());
    let expected = ["/metrics/resource", "/pods", "/node", "/pods", "/node"];
    assert_eq!(asked, expected.map(|path| format!("{path} None")));
}
