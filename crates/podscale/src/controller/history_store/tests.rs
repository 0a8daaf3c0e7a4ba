use super::*;
use crate::controller::histories::{Recalled, shard};
use crate::world::Key;
use podscale_api::time::parse_rfc3339;
use podscale_apiserver::ApiServer;
use podscale_core::history::Recommendation;
use podscale_core::{History, Time};

fn server() -> (ApiServer, Clock) {
    let clock = Clock::wall();
    let server = ApiServer::new(podscale_apiserver::Config {
        clock: Arc::new(move || clock.now()),
        ..podscale_apiserver::Config::default()
    });
    (server, clock)
}

fn keeper(client: &Client, clock: Clock) -> (Keeper, Arc<Histories>) {
    let histories = Arc::new(Histories::default());
    let config = Config { namespace: "default".to_owned(), name: "podscale".to_owned() };
    let keeper = Keeper::new(client.clone(), clock, config, Arc::clone(&histories));
    (keeper, histories)
}

fn key() -> Key {
    Key { namespace: "shop".into(), name: "web".into() }
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
    let (first, histories) = keeper(&client, clock);
    first.load(Term::Elected(1)).await;
    histories.remember(&key(), "u-1", recalled(4, at), true);
    // A rescale is stored by itself.
    let stored = async {
        loop {
            let (other, restored) = keeper(&client, clock);
            other.load(Term::Elected(2)).await;
            let found = restored.recall(&key(), "u-1");
            if found != Recalled::default() {
                break found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let found = tokio::select! {
        () = first.keep(Term::Elected(1)) => unreachable!("it goes on for ever"),
        found = tokio::time::timeout(Duration::from_secs(20), stored) => found.expect("stored"),
    };
    assert_eq!(found, Recalled { interrupted: true, ..recalled(4, at) }, "the leader may go on");
    // At the end everything is stored, and complete.
    histories.remember(&key(), "u-1", recalled(5, at), false);
    first.finish(Term::Elected(1)).await;
    let (second, restored) = keeper(&client, clock);
    second.load(Term::Elected(2)).await;
    assert_eq!(restored.recall(&key(), "u-1"), recalled(5, at));
    // Whoever was leader before does not overwrite what the next one stored.
    restored.remember(&key(), "u-1", recalled(6, at), false);
    second.finish(Term::Elected(2)).await;
    histories.remember(&key(), "u-1", recalled(7, at), true);
    let late = Stamp { term: Term::Elected(1), complete: false };
    assert!(!first.save(&BTreeSet::from([shard("u-1")]), late).await);
    let (third, restored) = keeper(&client, clock);
    third.load(Term::Elected(3)).await;
    assert_eq!(restored.recall(&key(), "u-1"), recalled(6, at));
}

#[tokio::test]
async fn without_a_store_deciding_goes_on() {
    let clock = Clock::wall();
    let client = Client::new(axum::Router::new(), "default");
    let (keeper, histories) = keeper(&client, clock);
    let at = parse_rfc3339("2026-01-01T00:00:00Z").expect("a time");
    histories.remember(&key(), "u-1", recalled(4, at), true);
    keeper.load(Term::Elected(1)).await;
    let known = histories.recall(&key(), "u-1");
    assert_eq!(known, Recalled { interrupted: true, ..recalled(4, at) });
    histories.remember(&key(), "u-1", recalled(4, now(&clock)), true);
    let stamp = Stamp { term: Term::Elected(1), complete: false };
    let shards = histories.take_changed(false);
    assert!(!keeper.save(&shards, stamp).await);
    assert_eq!(histories.take_changed(false), shards, "it is tried again");
}
