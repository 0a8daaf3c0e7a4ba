//! How many reconciles write at the same time, and how many wait for that.

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// How many reconciles write at the same time: about as many calls as an API server takes at once on
/// one connection. More would wait all the same, each with all that it is about to write.
pub(in crate::controller) const WRITE_PERMITS: usize = 256;
/// How many wait for that besides those that observe: after a first start every object has something to write.
const WAITING_PERMITS: usize = 16_384;

/// Permits to write; shared by all workers.
pub(in crate::controller) struct WritePermits {
    writing: Semaphore,
    waiting: Arc<Semaphore>,
}

impl WritePermits {
    /// All of them are free.
    pub(in crate::controller) fn new() -> WritePermits {
        let waiting = Arc::new(Semaphore::new(WAITING_PERMITS));
        WritePermits { writing: Semaphore::new(WRITE_PERMITS), waiting }
    }

    /// Waits until a reconcile may write. Meanwhile another one may observe in its place, whose permit is exchanged for
    /// one to wait: a slow API server holds up no poll.
    pub(super) async fn acquire(&self, permit: &mut OwnedSemaphorePermit) -> WritePermit<'_> {
        if let Ok(free) = self.writing.try_acquire() {
            return WritePermit { has_waited: false, _held: Some(free) };
        }
        if let Ok(waiting) = Arc::clone(&self.waiting).try_acquire_owned() {
            *permit = waiting;
        }
        // Nobody closes it.
        WritePermit { has_waited: true, _held: self.writing.acquire().await.ok() }
    }
}

/// Allows to write for as long as it is held.
pub(super) struct WritePermit<'a> {
    /// Whether others had to end first, so that what is known may have changed meanwhile.
    pub(super) has_waited: bool,
    _held: Option<SemaphorePermit<'a>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn whoever_waits_to_write_lets_another_one_observe_up_to_a_bound() {
        let permits = &WritePermits::new();
        let workers = Arc::new(Semaphore::new(WRITE_PERMITS + 1));
        let begin = || Arc::clone(&workers).try_acquire_owned().expect("a free worker");
        let mut held: Vec<_> = (0..WRITE_PERMITS).map(|_| begin()).collect();
        let writing: Vec<_> =
            held.iter_mut().map(|permit| permits.acquire(permit).now_or_never()).collect();
        assert!(writing.iter().flatten().filter(|it| !it.has_waited).count() == WRITE_PERMITS);
        assert_eq!(workers.available_permits(), 1, "whoever writes is a worker still");
        let wait = || {
            let mut permit = begin();
            let mut waiting =
                Box::pin(async move { permits.acquire(&mut permit).await.has_waited });
            assert_eq!((&mut waiting).now_or_never(), None, "it waits");
            waiting
        };
        let mut waiting: Vec<_> = (0..WAITING_PERMITS).map(|_| wait()).collect();
        assert_eq!(workers.available_permits(), 1, "others observe meanwhile");
        waiting.push(wait());
        assert_eq!(workers.available_permits(), 0, "too many wait");
        drop(writing);
        assert_eq!((&mut waiting[0]).now_or_never(), Some(true), "in the order in which they came");
    }
}
