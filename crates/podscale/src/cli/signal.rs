//! Being asked to end.

/// Waits until somebody asks the program to end.
pub async fn end() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = terminate.recv() => {}
                () = interrupt() => {}
            }
            return;
        }
    }
    interrupt().await;
}

async fn interrupt() {
    if tokio::signal::ctrl_c().await.is_err() {
        // Without signals something else must end it.
        std::future::pending::<()>().await;
    }
}
