use super::*;
use crate::controller::observer::Observer;
use crate::dashboard::picture::sample::{of_kind, picture};
use crate::dialect::{Key, Kind};
use axum::body::{Body, to_bytes};
use axum::http::Request;
use futures::StreamExt;
use podscale_client::clock::Clock;
use podscale_client::watch::Presence;
use serde_json::Value;
use tower::ServiceExt;

fn publish(hub: &Hub, name: &str, current: i32) {
    hub.publish(picture(name, 6, current, OutcomeKind::Steady));
}

async fn get(hub: &Hub, path: &str, headers: &[(&str, &str)]) -> Response {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    router(hub.clone()).oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
}

async fn json(response: Response) -> Value {
    let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    serde_json::from_slice(&body).unwrap()
}

fn header_of<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).map(|v| v.to_str().unwrap()).unwrap_or_default()
}

/// One event of a stream: its name, its data, its id.
type Sent = (String, Value, String);

/// The next events of a stream, comments left out.
async fn events(stream: &mut axum::body::BodyDataStream, count: usize) -> Vec<Sent> {
    let mut text = String::new();
    let complete = |text: &str| text.matches("\n\n").count();
    while complete(&text) < count {
        text.push_str(std::str::from_utf8(&stream.next().await.unwrap().unwrap()).unwrap());
    }
    let field = |block: &str, name: &str| {
        let line = block.lines().find_map(|l| l.strip_prefix(name)).unwrap_or_default();
        line.trim().to_owned()
    };
    let blocks = text.split_terminator("\n\n");
    blocks
        .map(|b| {
            (field(b, "event:"), serde_json::from_str(&field(b, "data:")).unwrap(), field(b, "id:"))
        })
        .collect()
}

#[tokio::test]
async fn files_have_their_types_and_forbid_other_hosts() {
    let hub = Hub::new(Clock::wall());
    for (path, mime) in [
        ("/", "text/html; charset=utf-8"),
        ("/assets/main.js", "text/javascript; charset=utf-8"),
        ("/assets/style.css", "text/css; charset=utf-8"),
        ("/assets/icon.svg", "image/svg+xml"),
    ] {
        let response = get(&hub, path, &[]).await;
        assert_eq!(response.status(), 200, "{path}");
        assert_eq!(header_of(&response, "content-type"), mime, "{path}");
        assert!(header_of(&response, "content-security-policy").starts_with("default-src 'none'"));
        assert_eq!(header_of(&response, "x-content-type-options"), "nosniff");
        assert_eq!(header_of(&response, "cache-control"), "no-cache");
        let tag = header_of(&response, "etag").to_owned();
        let again = get(&hub, path, &[("if-none-match", &tag)]).await;
        assert_eq!(again.status(), 304, "{path}");
    }
    for path in ["/assets/none.js", "/assets/..%2fmain.js", "/api/none", "/index.html"] {
        assert_eq!(get(&hub, path, &[]).await.status(), 404, "{path}");
    }
}

#[tokio::test]
async fn every_file_that_the_page_names_is_served() {
    let hub = Hub::new(Clock::wall());
    let page = to_bytes(get(&hub, "/", &[]).await.into_body(), 1 << 20).await.unwrap();
    let page = String::from_utf8(page.to_vec()).unwrap();
    let names: Vec<&str> = page.split('"').filter(|part| part.starts_with("/assets/")).collect();
    assert!(names.len() >= 5, "{names:?}");
    for name in names {
        assert_eq!(get(&hub, name, &[]).await.status(), 200, "{name}");
    }
}

#[tokio::test]
async fn data_is_plain_json() {
    let hub = Hub::new(Clock::wall());
    publish(&hub, "web", 3);
    let list = json(get(&hub, "/api/autoscalers", &[]).await).await;
    assert_eq!(list["autoscalers"][0]["name"], "web");
    assert_eq!(list["autoscalers"][0]["lastScale"], 5000);
    assert_eq!(list["autoscalers"][0]["outcome"], "steady");
    let one = json(get(&hub, "/api/autoscalers/shop/web", &[]).await).await;
    assert_eq!(one["past"]["points"][0], json!([6000, 3, 3, 1, 10]));
    assert_eq!(one["past"]["latest"]["reason"], "all metrics are near their targets");
    let none = get(&hub, "/api/autoscalers/shop/none", &[]).await;
    assert_eq!(none.status(), 404);
}

#[tokio::test]
async fn objects_of_two_kinds_share_a_name() {
    static OTHER: Kind = Kind {
        name: "ScaledObject",
        api_version: "keda.sh/v1alpha1",
        plural: "scaledobjects",
        resource: "scaledobjects.keda.sh",
        presence: Presence::Optional,
    };
    let hub = Hub::new(Clock::wall());
    publish(&hub, "web", 3);
    hub.publish(of_kind(&OTHER, picture("web", 7, 8, OutcomeKind::Steady)));
    let list = json(get(&hub, "/api/autoscalers", &[]).await).await;
    let keys: Vec<&Value> =
        list["autoscalers"].as_array().unwrap().iter().map(|row| &row["key"]).collect();
    assert_eq!(keys, ["shop/web", "shop/web/scaledobjects.keda.sh"]);
    let size = async |path: &str| {
        let one = json(get(&hub, path, &[]).await).await;
        one["autoscaler"]["current"].as_i64()
    };
    let path = "/api/autoscalers/shop/web";
    assert_eq!(size(path).await, Some(3));
    assert_eq!(size(&format!("{path}?kind=horizontalpodautoscalers.autoscaling")).await, Some(3));
    assert_eq!(size(&format!("{path}?kind=scaledobjects.keda.sh")).await, Some(8));
    assert_eq!(size(&format!("{path}?kind=others.example.com")).await, None);

    let key = Key { namespace: "shop".into(), name: "web".into(), kind: &OTHER };
    hub.gone(&key);
    assert_eq!(size(path).await, Some(3), "only the other one is gone");
    assert_eq!(size(&format!("{path}?kind=scaledobjects.keda.sh")).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_stream_begins_with_everything_and_goes_on() {
    let hub = Hub::new(Clock::wall());
    publish(&hub, "web", 3);
    let response = get(&hub, "/api/events?watch=shop/web", &[]).await;
    assert_eq!(header_of(&response, "content-type"), "text/event-stream");
    let mut stream = response.into_body().into_data_stream();
    let first = events(&mut stream, 2).await;
    assert_eq!((&*first[0].0, &first[0].1["rows"][0]["current"]), ("state", &json!(3)));
    assert_eq!((&*first[1].0, &first[1].1["past"]["key"]), ("past", &json!("shop/web")));
    assert!(first[0].2.is_empty(), "the id comes with the last part");

    publish(&hub, "web", 4);
    let next = events(&mut stream, 2).await;
    assert_eq!((&*next[0].0, &next[0].1["rows"][0]["current"]), ("changes", &json!(4)));
    assert_eq!((&*next[1].0, &next[1].1["past"]["points"][0][1]), ("more", &json!(4)));
    assert_eq!(events(&mut stream, 1).await[0].0, "tick");

    // The same stream after a break: only what is new.
    publish(&hub, "other", 1);
    let id = first[1].2.as_str();
    let again = get(&hub, "/api/events?watch=shop/web", &[("last-event-id", id)]).await;
    let mut stream = again.into_body().into_data_stream();
    let missed = events(&mut stream, 2).await;
    assert_eq!((&*missed[0].0, missed[0].1["rows"].as_array().unwrap().len()), ("changes", 2));
    assert_eq!(
        (&*missed[1].0, missed[1].1["past"]["points"].as_array().unwrap().len()),
        ("more", 1)
    );

    // Another autoscaler is watched: the list is known, its past is not.
    let path = format!("/api/events?watch=shop/other&since={}", missed[1].2);
    let mut stream = get(&hub, &path, &[]).await.into_body().into_data_stream();
    let other = events(&mut stream, 2).await;
    assert_eq!((&*other[0].0, &other[0].1["rows"]), ("changes", &json!([])));
    assert_eq!((&*other[1].0, &other[1].1["past"]["key"]), ("past", &json!("shop/other")));

    // An id of another run says nothing.
    let strange = get(&hub, "/api/events", &[("last-event-id", "0-1")]).await;
    let mut stream = strange.into_body().into_data_stream();
    assert_eq!(events(&mut stream, 1).await[0].0, "state");
}

#[tokio::test(start_paused = true)]
async fn closing_ends_streams_and_their_number_is_limited() {
    let hub = Hub::new(Clock::wall());
    let service = router(hub.clone());
    let ask = || service.clone().oneshot(Request::get("/api/events").body(Body::empty()).unwrap());
    let mut streams = Vec::new();
    for _ in 0..READERS {
        let response = ask().await.unwrap();
        assert_eq!(response.status(), 200);
        streams.push(response.into_body().into_data_stream());
    }
    assert_eq!(ask().await.unwrap().status(), 503);
    let mut one = streams.pop().unwrap();
    assert_eq!(events(&mut one, 1).await[0].0, "state");
    hub.close();
    assert!(one.next().await.is_none());
    drop(one);
    assert_eq!(ask().await.unwrap().status(), 200);
}
