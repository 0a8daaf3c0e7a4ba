//! Sources that say by themselves that there is something to do: whoever waits for the object is told.

use super::ObjectName;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How long a source is not listened to after it has spoken, however often it speaks.
const PAUSE: Duration = Duration::from_secs(1);

/// Takes the topic of an object.
pub(crate) type Pushed = Box<dyn Fn(Arc<str>) + Send + Sync>;

/// What pushes for the object of a trigger with this key are about. Keys begin with the namespace and the name of
/// their object.
pub(crate) fn topic(key: &str) -> Arc<str> {
    let end = key.match_indices('/').nth(1).map_or(key.len(), |(at, _)| at);
    format!("trigger {}", &key[..end]).into()
}

/// Listens to the sources of an object until it is dropped; nobody does if there is nothing to hear.
pub(super) fn listen(
    object: &ObjectName,
    pushes: Vec<watch::Receiver<u64>>,
    pushed: &Arc<OnceLock<Pushed>>,
) -> Option<JoinSet<()>> {
    if pushes.is_empty() {
        return None;
    }
    let topic = topic(&format!("{}/{}", object.namespace, object.name));
    let mut listeners = JoinSet::new();
    for push in pushes {
        listeners.spawn(pass_on(push, Arc::clone(&topic), Arc::clone(pushed)));
    }
    Some(listeners)
}

async fn pass_on(mut push: watch::Receiver<u64>, topic: Arc<str>, pushed: Arc<OnceLock<Pushed>>) {
    while push.changed().await.is_ok() {
        if let Some(pushed) = pushed.get() {
            pushed(Arc::clone(&topic));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::OwnerKind;
    use parking_lot::Mutex;

    #[tokio::test(start_paused = true)]
    async fn pushes_of_a_moment_are_one_and_end_with_the_object() {
        let kind = OwnerKind::ScaledObject;
        let object = ObjectName { namespace: "shop".into(), name: "web".into(), kind };
        let (heard, pushed) = (Arc::new(Mutex::new(Vec::new())), Arc::new(OnceLock::new()));
        let log = Arc::clone(&heard);
        let report: Pushed = Box::new(move |topic| log.lock().push(topic));
        assert!(pushed.set(report).is_ok());
        assert!(listen(&object, Vec::new(), &pushed).is_none());
        let source = watch::Sender::new(0);
        let listeners = listen(&object, vec![source.subscribe()], &pushed);
        for number in 1..=3 {
            for value in 0..10 {
                source.send_replace(10 * number + value);
            }
            tokio::time::sleep(PAUSE * 2).await;
        }
        assert_eq!(*heard.lock(), vec![topic("shop/web/0/s0-queue"); 3]);
        drop(listeners);
        source.send_replace(0);
        tokio::time::sleep(PAUSE).await;
        assert_eq!(heard.lock().len(), 3);
    }
}
