//! The stored form of histories: one ConfigMap for each shard, with one entry for each object.

use super::Config;
use crate::controller::recalled::Recalled;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use podscale_api::time::{format_rfc3339_micros, parse_rfc3339};
use podscale_client::election::Term;
use podscale_core::{History, Span, Time};
use std::collections::BTreeMap;

/// The label by which parts are found.
pub(super) const LABEL: &str = "podscale.dev/history";
/// An API server refuses objects of more than a mebibyte; the rest is for the envelope.
const LIMIT_BYTES: usize = 900 * 1024;
/// After a longer gap, recommendations are missing whoever led meanwhile.
const GAP: Span = Span::seconds(60);

const SAVED: &str = "saved";
const TERM: &str = "term";
const COMPLETE: &str = "complete";

/// Who stores a part, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stamp {
    /// In which term.
    pub(super) term: Term,
    /// Whether nothing will be decided in this term any more.
    pub(super) complete: bool,
}

/// What a stored part says.
pub(super) struct Stored {
    pub(super) shard: Option<u8>,
    pub(super) version: String,
    pub(super) histories: Vec<(Box<str>, Recalled)>,
    /// How many histories could not be read.
    pub(super) broken: usize,
}

/// The name of a part.
pub(super) fn name(prefix: &str, shard: u8) -> String {
    format!("{prefix}-history-{shard:02}")
}

fn shard_of(prefix: &str, name: &str) -> Option<u8> {
    name.strip_prefix(prefix)?.strip_prefix("-history-")?.parse().ok()
}

/// The term in which a part was stored.
pub(super) fn term(map: &ConfigMap) -> Term {
    let term = map.data.as_ref().and_then(|data| data.get(TERM));
    term.and_then(|term| term.parse().ok()).map_or(Term::Alone, Term::Elected)
}

/// A part in its stored form. What does not fit is left out: what was learned of demands, then whole histories, the
/// largest first.
pub(super) fn map(
    config: &Config,
    shard: u8,
    part: BTreeMap<String, Vec<u8>>,
    stamp: Stamp,
    now: Time,
) -> ConfigMap {
    let mut entries: Vec<(String, Vec<u8>)> = part.into_iter().collect();
    let size = |(uid, bytes): &(String, Vec<u8>)| uid.len() + bytes.len().div_ceil(3) * 4 + 8;
    let mut total: usize = entries.iter().map(size).sum();
    if total > LIMIT_BYTES {
        entries.sort_by_key(|(_, bytes)| bytes.len());
        for entry in entries.iter_mut().rev() {
            if total > LIMIT_BYTES
                && let Some(less) = without_learned(&entry.1)
            {
                total -= size(entry);
                entry.1 = less;
                total += size(entry);
            }
        }
        entries.sort_by_key(|(_, bytes)| bytes.len());
        let before = entries.len();
        total = 0;
        entries.retain(|entry| {
            total += size(entry);
            total <= LIMIT_BYTES
        });
        let left_out = before - entries.len();
        tracing::warn!(shard, left_out, "histories are too large to be stored in full");
    }
    let mut data = BTreeMap::from([
        (SAVED.to_owned(), format_rfc3339_micros(now)),
        (COMPLETE.to_owned(), stamp.complete.to_string()),
    ]);
    if let Term::Elected(term) = stamp.term {
        data.insert(TERM.to_owned(), term.to_string());
    }
    let labels = [("app.kubernetes.io/managed-by", "podscale"), (LABEL, config.name.as_str())];
    let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name(&config.name, shard)),
            namespace: Some(config.namespace.clone()),
            labels: Some(BTreeMap::from(labels)),
            ..ObjectMeta::default()
        },
        data: Some(data),
        binary_data: Some(entries.into_iter().map(|(uid, b)| (uid, ByteString(b))).collect()),
        ..ConfigMap::default()
    }
}

/// The same history without what was learned of the demand, which is most of it.
fn without_learned(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut history = History::from_bytes(bytes).ok()?;
    history.forecaster.take()?;
    Some(history.to_bytes())
}

/// Reads a part that whoever leads in `term` takes over. Its recommendations are complete only if the
/// leader right before stored them at its end, and not long ago.
pub(super) fn read(map: &ConfigMap, prefix: &str, term: Term, now: Time) -> Stored {
    let said = |name: &str| map.data.as_ref().and_then(|data| data.get(name));
    let saved = said(SAVED).and_then(|text| parse_rfc3339(text).ok());
    let recent = saved.is_some_and(|saved| now.since(saved) <= GAP);
    let complete = said(COMPLETE).is_some_and(|complete| complete == "true");
    let interrupted = !(complete && recent && term.follows(self::term(map)));
    let (mut histories, mut broken) = (Vec::new(), 0);
    for (uid, ByteString(bytes)) in map.binary_data.iter().flatten() {
        match History::from_bytes(bytes) {
            Ok(history) => {
                histories.push((uid.as_str().into(), Recalled { history, interrupted }));
            }
            Err(error) => {
                tracing::debug!(uid, %error, "a history cannot be read");
                broken += 1;
            }
        }
    }
    let name = map.metadata.name.as_deref().unwrap_or_default();
    let version = map.metadata.resource_version.clone().unwrap_or_default();
    Stored { shard: shard_of(prefix, name), version, histories, broken }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podscale_core::history::Recommendation;
    use podscale_core::model::Milli;
    use podscale_core::predict::{Demand, Forecaster};

    fn config() -> Config {
        Config { namespace: "own".to_owned(), name: "podscale".to_owned() }
    }

    fn history(entries: usize) -> History {
        let recommendations = vec![Recommendation { replicas: 3, at: Time(7) }; entries];
        History { recommendations, ..History::default() }
    }

    #[test]
    fn what_is_stored_can_be_read_and_tells_whether_it_is_complete() {
        let at = |seconds| Time(0).after(Span::seconds(seconds));
        let elected = Term::Elected;
        for (stored, complete, reader, seconds, interrupted) in [
            (elected(4), true, elected(5), 10, false),
            (elected(4), true, elected(6), 10, true),
            (elected(4), false, elected(5), 10, true),
            (elected(4), true, elected(5), 61, true),
            (Term::Alone, true, Term::Alone, 10, false),
            (Term::Alone, true, elected(1), 10, true),
            (elected(4), true, Term::Alone, 10, true),
        ] {
            let part = BTreeMap::from([("u-1".to_owned(), history(3).to_bytes())]);
            let stamp = Stamp { term: stored, complete };
            let map = map(&config(), 7, part, stamp, at(0));
            let read = read(&map, "podscale", reader, at(seconds));
            let recalled = Recalled { history: history(3), interrupted };
            assert_eq!(read.histories, [("u-1".into(), recalled)], "{stored:?} {reader:?}");
            assert_eq!((read.shard, read.broken), (Some(7), 0));
            assert_eq!(term(&map), stored);
        }
    }

    #[test]
    fn a_part_stays_below_the_limit_and_nonsense_is_counted() {
        let part = (0..2000).map(|n| (format!("u-{n:04}"), history(n).to_bytes())).collect();
        let stamp = Stamp { term: Term::Alone, complete: false };
        let mut map = map(&config(), 0, part, stamp, Time(0));
        let stored = serde_json::to_vec(&map).expect("JSON").len();
        assert!((LIMIT_BYTES * 9 / 10..1_000_000).contains(&stored), "{stored} bytes");
        let entries = map.binary_data.as_mut().expect("entries");
        assert!(entries.contains_key("u-0001") && !entries.contains_key("u-1999"));
        entries.insert("u-0001".to_owned(), ByteString(vec![9, 9]));
        let count = entries.len();
        let read = read(&map, "podscale", Term::Alone, Time(0));
        assert_eq!((read.histories.len(), read.broken), (count - 1, 1));
    }

    #[test]
    fn what_was_learned_is_left_out_before_whole_histories() {
        let mut learned = Forecaster::default();
        for minute in 0..10_080i64 {
            let at = Time(0).after(Span::seconds(minute * 60));
            let replicas = Milli(minute * 7919 % 100_000);
            learned.observe(Demand { replicas, at, horizon: Span::seconds(60) });
        }
        let history = History { forecaster: Some(Box::new(learned)), ..history(3) };
        let part = (0..400).map(|n| (format!("u-{n:04}"), history.to_bytes())).collect();
        let stamp = Stamp { term: Term::Alone, complete: false };
        let map = map(&config(), 0, part, stamp, Time(0));
        let stored = serde_json::to_vec(&map).expect("JSON").len();
        assert!(stored < 1_000_000, "{stored} bytes");
        let histories = read(&map, "podscale", Term::Alone, Time(0)).histories;
        let knows = |(_, recalled): &&(Box<str>, Recalled)| recalled.history.forecaster.is_some();
        let knowing = histories.iter().filter(knows).count();
        assert_eq!(histories.len(), 400, "each has its recommendations");
        assert!((50..400).contains(&knowing), "{knowing} know their demand");
    }
}
