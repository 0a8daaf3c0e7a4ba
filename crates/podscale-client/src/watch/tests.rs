use super::*;
use crate::instrument::Instruments;
use axum::Router;
use axum::http::Uri;
use bytes::Bytes;
use parking_lot::Mutex;
use std::io::Error;
use std::sync::Arc;

type Object = serde_json::Value;

/// A server that gives these answers one after the other, and then waits for ever.
fn server(answers: Vec<(u16, &'static str)>) -> (Client, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (log, answers) = (Arc::clone(&asked), Arc::new(Mutex::new(answers.into_iter())));
    let router = Router::new().fallback(move |uri: Uri| {
        let (log, answers) = (Arc::clone(&log), Arc::clone(&answers));
        async move {
            let next = answers.lock().next();
            let Some((code, body)) = next else { return std::future::pending().await };
            log.lock().push(uri.to_string());
            let code = http::StatusCode::from_u16(code).expect("a code");
            (code, body)
        }
    });
    (Client::new(router, "default"), asked)
}

#[test]
fn the_version_comes_from_the_object_or_from_a_second_reading() {
    fn after<T: Watched>(line: &str) -> String {
        let mut version = "1".to_owned();
        let mut applied = 0;
        let end = take_in::<T>(line.as_bytes(), &mut version, &mut |_| applied += 1);
        let end = match end {
            Ok(()) => "goes on".to_owned(),
            Err(End::Failed(error) | End::Refused(error)) => error.to_string(),
            Err(end) => format!("{end:?}"),
        };
        format!("{version}, applied {applied}, {end}")
    }
    let of = |kind: &str, object: &str| format!(r#"{{"type":"{kind}","object":{object}}}"#);
    let object = r#"{"metadata":{"name":"x","resourceVersion":"7"}}"#;
    for (line, expected) in [
        (of("ADDED", object), "7, applied 1, goes on"),
        (of("DELETED", object), "7, applied 1, goes on"),
        (of("BOOKMARK", object), "7, applied 0, goes on"),
        (of("ADDED", r#"{"metadata":{"name":"x"}}"#), "1, applied 1, goes on"),
        (of("ERROR", r#"{"kind":"Status","code":410}"#), "1, applied 0, Expired"),
        (of("ERROR", r#"{"kind":"Status","code":500,"message":"no"}"#), "1, applied 0, no"),
    ] {
        assert_eq!(after::<Object>(&line), expected, "{line}");
        assert_eq!(after::<Pod>(&line), expected, "{line}");
    }
    let nonsense = after::<Pod>(&of("ADDED", r#"{"spec":7}"#));
    assert!(nonsense.starts_with("1, applied 0, a line of a watch cannot be read"), "{nonsense}");
}

#[tokio::test(start_paused = true)]
async fn lists_pages_then_follows_changes_over_ends_and_expiries() {
    let (client, asked) = server(vec![
        (500, "not yet"),
        (200, r#"{"metadata":{"resourceVersion":"7","continue":"more"},"items":["a"]}"#),
        (200, r#"{"metadata":{"resourceVersion":"7"},"items":["b"]}"#),
        (
            200,
            "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"8\"}}}\n\
             {\"type\":\"DELETED\",\"object\":{\"metadata\":{\"resourceVersion\":\"9\"}}}\n\
             {\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"12\"}}}\n",
        ),
        (503, "away"),
        (200, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410}}\n"),
        (200, r#"{"metadata":{"resourceVersion":"20"},"items":null}"#),
        (410, "gone"),
        (200, r#"{"metadata":{"resourceVersion":"30"},"items":[]}"#),
        (200, "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{}}}\n"),
    ]);
    let mut applied = Vec::new();
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let task = tokio::spawn(async move {
        follow::<Object>(
            &client,
            "/api/v1/things",
            "things",
            Presence::Always,
            &(Arc::new(()) as Instruments),
            |change| {
                let _ = sender.send(change);
            },
        )
        .await;
    });
    while applied.len() < 6 {
        applied.push(receiver.recv().await.expect("six changes"));
    }
    task.abort();
    let versioned = |version: &str| serde_json::json!({"metadata": {"resourceVersion": version}});
    let expected: Vec<Change<Object>> = vec![
        Change::All(vec!["a".into(), "b".into()]),
        Change::Applied(versioned("8")),
        Change::Deleted(versioned("9")),
        Change::All(vec![]),
        Change::All(vec![]),
        Change::Applied(serde_json::json!({"metadata": {}})),
    ];
    assert_eq!(applied, expected);
    let versions: Vec<String> = asked
        .lock()
        .iter()
        .map(|uri| match uri.split_once("resourceVersion=") {
            Some((_, version)) => format!("watch {version}"),
            None if uri.contains("continue=more") => "page".to_owned(),
            None => "list".to_owned(),
        })
        .collect();
    assert_eq!(
        versions.join("; "),
        "list; list; page; watch 7; watch 12; watch 12; list; watch 20; list; watch 30"
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_goes_silent_is_opened_again() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (log, began) = (Arc::clone(&asked), tokio::time::Instant::now());
    let router = Router::new().fallback(move |uri: Uri| {
        let watches = uri.to_string().contains("watch=true");
        log.lock().push((began.elapsed().as_secs(), watches));
        let list = r#"{"metadata":{"resourceVersion":"7"},"items":[]}"#;
        let body = match watches {
            true => {
                axum::body::Body::from_stream(futures::stream::pending::<Result<Bytes, Error>>())
            }
            false => axum::body::Body::from(list),
        };
        async move { body }
    });
    let client = Client::new(router, "default");
    let task = tokio::spawn(async move {
        follow::<Object>(
            &client,
            "/api/v1/things",
            "things",
            Presence::Always,
            &(Arc::new(()) as Instruments),
            |_| {},
        )
        .await;
    });
    while asked.lock().len() < 4 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    task.abort();
    assert_eq!(*asked.lock(), [(0, false), (0, true), (90, true), (180, true)]);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_served_or_may_not_be_listed_is_waited_for() {
    for (answers, expected) in [
        (vec![(404, ""), (404, ""), (200, LIST)], "0 1"),
        // What is known stays: nobody said that it is gone.
        (vec![(403, ""), (403, ""), (200, LIST)], "1"),
    ] {
        let (client, asked) = server(answers);
        let mut applied = Vec::new();
        let instruments: Instruments = Arc::new(());
        let following = follow::<Object>(
            &client,
            "/apis/x.dev/v1/things",
            "things",
            Presence::Optional,
            &instruments,
            |change| match change {
                Change::All(all) => applied.push(all.len().to_string()),
                _ => applied.push("?".to_owned()),
            },
        );
        let _ = tokio::time::timeout(Duration::from_secs(60), following).await;
        assert_eq!(applied.join(" "), expected);
        assert_eq!(asked.lock().len(), 3);
    }
}

const LIST: &str = r#"{"metadata":{"resourceVersion":"7"},"items":["a"]}"#;
