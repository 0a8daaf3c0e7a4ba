use super::*;
use crate::controller::index::histories::shard;
use crate::controller::manage::Manage;
use crate::controller::recalled::Recalled;
use crate::dialect::hpa::{self, HPA};
use crate::dialect::{Key, Managed};
use podscale_api::time::parse_rfc3339;
use podscale_apiserver::ApiServer;
use podscale_client::watch::Change;
use podscale_core::history::Recommendation;
use podscale_core::{History, Settings, Time};

fn server() -> (ApiServer, Clock) {
    let clock = Clock::wall();
    let server = ApiServer::new(podscale_apiserver::Config {
        clock: Arc::new(move || clock.now()),
        ..podscale_apiserver::Config::default()
    });
    (server, clock)
}

/// A store, and an index that knows one object.
fn store(client: &Client, clock: Clock) -> (HistoryStore, Arc<Index>) {
    let period = Duration::from_secs(15);
    let index = Arc::new(Index::new(clock, period, Settings::default(), Manage::default(), false));
    index.apply(&HPA, Change::All(vec![object()]));
    let config = Config { namespace: "default".to_owned(), name: "podscale".to_owned() };
    let store = HistoryStore::new(client.clone(), clock, config, Arc::clone(&index));
    (store, index)
}

fn object() -> Managed {
    let hpa = serde_json::json!({"metadata": {"namespace": "shop", "name": "web", "uid": "u-1"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "web"}}});
    hpa::managed(serde_json::from_value(hpa).expect("an autoscaler"))
}

fn key() -> Key {
    object().key
}

fn recall(index: &Index) -> Recalled {
    index.reconcile_state(&key(), "u-1", Time(0)).expect("an object").recalled
}

fn remember(index: &Index, recalled: Recalled, rescaled: bool) {
    index.commit(&key(), "u-1", recalled, rescaled);
}

fn recalled(replicas: i32, at: Time) -> Recalled {
    let recommendations = vec![Recommendation { replicas, at }];
    Recalled { history: History { recommendations, ..History::default() }, interrupted: false }
}

#[tokio::test]
async fn the_next_leader_knows_what_the_last_one_did() {
    let (server, clock) = server();
    let client = Client::new(server.router(), "default");
    let at = now(&clock);
    let (first, index) = store(&client, clock);
    first.load(Term::Elected(1)).await;
    remember(&index, recalled(4, at), true);
    // A rescale is stored by itself.
    let stored = async {
        loop {
            let (other, restored) = store(&client, clock);
            other.load(Term::Elected(2)).await;
            let found = recall(&restored);
            if found != Recalled::default() {
                break found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let found = tokio::select! {
        () = first.store_rescaled(Term::Elected(1)) => unreachable!("it goes on for ever"),
        found = tokio::time::timeout(Duration::from_secs(20), stored) => found.expect("stored"),
    };
    assert_eq!(found, Recalled { interrupted: true, ..recalled(4, at) }, "the leader may go on");
    // At the end it is complete, also if nothing has changed since.
    first.finish(Term::Elected(1)).await;
    let (other, restored) = store(&client, clock);
    other.load(Term::Elected(2)).await;
    assert_eq!(recall(&restored), recalled(4, at));
    // And so is what has.
    remember(&index, recalled(5, at), false);
    first.finish(Term::Elected(1)).await;
    let (second, restored) = store(&client, clock);
    second.load(Term::Elected(2)).await;
    assert_eq!(recall(&restored), recalled(5, at));
    // Whoever was leader before does not overwrite what the next one stored.
    remember(&restored, recalled(6, at), false);
    second.finish(Term::Elected(2)).await;
    remember(&index, recalled(7, at), true);
    let late = Stamp { term: Term::Elected(1), complete: false };
    assert!(!first.save(&BTreeSet::from([shard("u-1")]), late).await);
    let (third, restored) = store(&client, clock);
    third.load(Term::Elected(3)).await;
    assert_eq!(recall(&restored), recalled(6, at));
}

#[tokio::test]
async fn without_a_store_deciding_goes_on() {
    let clock = Clock::wall();
    let client = Client::new(axum::Router::new(), "default");
    let (store, index) = store(&client, clock);
    let at = parse_rfc3339("2026-01-01T00:00:00Z").expect("a time");
    remember(&index, recalled(4, at), true);
    store.load(Term::Elected(1)).await;
    let known = recall(&index);
    assert_eq!(known, Recalled { interrupted: true, ..recalled(4, at) });
    remember(&index, recalled(4, now(&clock)), true);
    let stamp = Stamp { term: Term::Elected(1), complete: false };
    let shards = index.take_changed_shards(false);
    assert!(!store.save(&shards, stamp).await);
    assert_eq!(index.take_changed_shards(false), shards, "it is tried again");
}
