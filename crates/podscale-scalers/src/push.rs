//! Sources that say by themselves that there is something to do.

use std::sync::OnceLock;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// How long it takes until somebody listens again who was cut off: at first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));

/// What one trigger is told. Nobody listens before somebody wants to know.
pub(crate) struct Push {
    changes: watch::Sender<u64>,
    task: OnceLock<AbortHandle>,
}

/// Tells that there is something to do.
#[derive(Clone)]
pub(crate) struct Teller(watch::Sender<u64>);

impl Teller {
    /// There is something to do.
    pub(crate) fn tell(&self) {
        self.0.send_modify(|number| *number = number.wrapping_add(1));
    }
}

impl Push {
    /// Nobody listens yet.
    pub(crate) fn new() -> Push {
        Push { changes: watch::Sender::new(0), task: OnceLock::new() }
    }

    /// Changes with everything that is told; the first who asks lets `listen` be called again and again, with
    /// pauses that grow while it tells nothing. It ends with the trigger.
    pub(crate) fn subscribe<F>(
        &self,
        mut listen: impl FnMut(Teller) -> F + Send + 'static,
    ) -> watch::Receiver<u64>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let receiver = self.changes.subscribe();
        self.task.get_or_init(|| {
            let changes = self.changes.clone();
            let listening = async move {
                let (first, most) = PAUSES;
                let mut pause = first;
                loop {
                    let before = *changes.borrow();
                    listen(Teller(changes.clone())).await;
                    pause = if *changes.borrow() == before { pause } else { first };
                    tokio::time::sleep(pause).await;
                    pause = pause.saturating_mul(2).min(most);
                }
            };
            tokio::spawn(listening).abort_handle()
        });
        receiver
    }
}

impl Drop for Push {
    fn drop(&mut self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn whoever_is_cut_off_listens_again_with_growing_pauses() {
        let (push, calls, began) = (Push::new(), Arc::new(AtomicU32::new(0)), Instant::now());
        let heard = calls.clone();
        let mut receiver = push.subscribe(move |teller| {
            let call = heard.fetch_add(1, Ordering::Relaxed);
            async move {
                if call == 3 {
                    teller.tell();
                }
            }
        });
        receiver.changed().await.expect("told");
        // After 2, 4 and 8 seconds.
        assert_eq!(began.elapsed().as_secs(), 14);
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(calls.load(Ordering::Relaxed), 5, "the pause is short again");
        drop(push);
        assert!(receiver.changed().await.is_err(), "nobody tells any longer");
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(calls.load(Ordering::Relaxed), 5, "it has ended");
    }
}
