//! Asks RabbitMQ's management API.

use super::mode::State;
use crate::address::{Address, encode};
use crate::http::connection::HttpServer;
use crate::http::refusal;
use crate::trigger::TriggerError;
use http::HeaderMap;
use serde::Deserialize;
use std::ops::Add;

/// Which queues are asked for, and which of their messages count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Queues {
    /// Set if the name is a pattern: how the queues that it finds become one.
    pub(super) operation: Option<Operation>,
    /// Whether messages count that consumers have and have not acknowledged.
    pub(super) ready_only: bool,
}

/// How several queues become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Sum,
    Average,
    Max,
}

/// Counts are missing until the broker has gathered its statistics, for some seconds after it or the queue is new.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Queue {
    name: String,
    messages: Option<u64>,
    messages_ready: Option<u64>,
    message_stats: Stats,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Stats {
    publish_details: Rate,
    deliver_get_details: Rate,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Rate {
    rate: f64,
}

#[derive(Debug, Deserialize)]
struct Page {
    items: Vec<Queue>,
    #[serde(default)]
    page_count: u64,
}

/// Where the queue, or the queues that a pattern finds, are described. The last part of the address' path is
/// the virtual host, unless that is given by itself.
pub(super) fn uri(address: &Address, vhost: &str, queue: &str, page: Option<i64>) -> String {
    let (before, last) = address.path.rsplit_once('/').unwrap_or(("", ""));
    let vhost = match (vhost, last) {
        ("", "") => "%2F".to_owned(),
        ("", last) => last.to_owned(),
        (vhost, _) => encode(vhost),
    };
    let base = format!("{}{}/api/queues/{vhost}", address.origin(), before.trim_end_matches('/'));
    let queue = encode(queue);
    match page {
        Some(size) => {
            format!("{base}?page=1&use_regex=true&pagination=false&name={queue}&page_size={size}")
        }
        None => format!("{base}/{queue}"),
    }
}

/// Asks for the state of queues.
///
/// # Errors
/// The broker cannot be reached, refuses, or has more queues than fit on a page.
pub(super) async fn ask(
    server: &HttpServer,
    uri: &str,
    queues: Queues,
) -> Result<State, TriggerError> {
    let name = server.name();
    let (status, body) = server.connection.get(name, uri, &HeaderMap::new()).await?;
    if !status.is_success() {
        return Err(refusal(name, status, &body));
    }
    read(&body, queues)
        .map_err(|problem| TriggerError::answer(format!("error inspecting RabbitMQ: {problem}")))
}

fn read(body: &[u8], queues: Queues) -> Result<State, String> {
    let wrong = |error: serde_json::Error| format!("the answer is not one of RabbitMQ: {error}");
    let Some(operation) = queues.operation else {
        let queue: Queue = serde_json::from_slice(body).map_err(wrong)?;
        return state(&queue, queues.ready_only);
    };
    let page: Page = serde_json::from_slice(body).map_err(wrong)?;
    if page.page_count > 1 {
        return Err("regex matches more queues than can be recovered at once".to_owned());
    }
    let states: Result<Vec<State>, String> =
        page.items.iter().map(|queue| state(queue, queues.ready_only)).collect();
    Ok(compose(operation, &states?))
}

/// An unknown count is no empty queue: its consumers would be stopped after every restart of the broker.
fn state(queue: &Queue, ready_only: bool) -> Result<State, String> {
    let messages = if ready_only { queue.messages_ready } else { queue.messages };
    let messages = messages.ok_or_else(|| {
        format!("the broker has not counted the messages of {:?} yet", queue.name)
    })?;
    Ok(State {
        messages: messages as f64,
        publish_rate: queue.message_stats.publish_details.rate,
        deliver_rate: queue.message_stats.deliver_get_details.rate,
    })
}

fn compose(operation: Operation, states: &[State]) -> State {
    let all = |number: fn(&State) -> f64| {
        let numbers = states.iter().map(number);
        match operation {
            Operation::Max => numbers.fold(0.0, f64::max),
            // Not `sum()`: that of nothing is a negative zero.
            Operation::Sum => numbers.fold(0.0, f64::add),
            Operation::Average => numbers.fold(0.0, f64::add) / states.len().max(1) as f64,
        }
    };
    State {
        // An average of messages is a whole number, as in KEDA.
        messages: all(|state| state.messages).trunc(),
        publish_rate: all(|state| state.publish_rate),
        deliver_rate: all(|state| state.deliver_rate),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_the_virtual_host_last() {
        for (address, vhost, page, expected) in [
            ("http://h:15672", "", None, "http://h:15672/api/queues/%2F/q%2F1"),
            ("http://h:15672/", "", None, "http://h:15672/api/queues/%2F/q%2F1"),
            ("http://u:p@h:15672/v%2Fh", "", None, "http://h:15672/api/queues/v%2Fh/q%2F1"),
            ("http://h/sub/path/v", "", None, "http://h/sub/path/api/queues/v/q%2F1"),
            ("http://h/v", "a b", None, "http://h/api/queues/a%20b/q%2F1"),
            (
                "http://h",
                "",
                Some(50),
                "http://h/api/queues/%2F?page=1&use_regex=true&pagination=false&name=q%2F1&page_size=50",
            ),
        ] {
            let address = Address::parse(address).expect("an address");
            assert_eq!(uri(&address, vhost, "q/1", page), expected);
        }
    }

    #[test]
    fn queues_become_one() {
        const ONE: &str =
            r#"{"messages":5,"messages_ready":3,"message_stats":{"publish_details":{"rate":1.5}}}"#;
        let page =
            format!(r#"{{"page_count":1,"items":[{ONE},{{"messages":2,"messages_ready":2}}]}}"#);
        let many = r#"{"page_count":2,"items":[]}"#.to_owned();
        let none = r#"{"page_count":0,"items":[]}"#.to_owned();
        for (body, operation, ready_only, expected) in [
            (ONE.to_owned(), None, false, "5 1.5 0"),
            (ONE.to_owned(), None, true, "3 1.5 0"),
            (
                r#"{"name":"jobs"}"#.to_owned(),
                None,
                false,
                r#"the broker has not counted the messages of "jobs" yet"#,
            ),
            (page.clone(), Some(Operation::Sum), false, "7 1.5 0"),
            (page.clone(), Some(Operation::Average), false, "3 0.75 0"),
            (page, Some(Operation::Max), true, "3 1.5 0"),
            (none, Some(Operation::Average), false, "0 0 0"),
            (
                many,
                Some(Operation::Sum),
                false,
                "regex matches more queues than can be recovered at once",
            ),
        ] {
            let found = match read(body.as_bytes(), Queues { operation, ready_only }) {
                Ok(s) => format!("{} {} {}", s.messages, s.publish_rate, s.deliver_rate),
                Err(problem) => problem,
            };
            assert_eq!(found, expected, "{body} {operation:?}");
        }
        assert!(read(b"<html>", Queues { operation: None, ready_only: false }).is_err());
    }
}
