//! Tokens that requests carry: fetched when they are needed, and kept until shortly before they expire.

use super::{add_secret, refusal};
use crate::secret::Secret;
use crate::trigger::TriggerError;
use futures::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// A token is fetched anew so long before it expires.
const EARLY: Duration = Duration::from_secs(10);
/// How long a token is used that does not say when it expires.
const UNLIMITED: Duration = Duration::from_secs(300);
/// No token is used for longer, whatever it says.
const LONGEST_SECONDS: u64 = 24 * 60 * 60;
/// How long it is believed that there is no token, and how often one that a server refuses is fetched anew: many triggers
/// may ask with the same one.
const PAUSE: Duration = Duration::from_secs(10);

/// What requests carry that is fetched or made for them.
pub(crate) trait Proof: Send + Sync {
    /// The headers of a request by GET.
    ///
    /// # Errors
    /// They cannot be had.
    fn headers<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<HeaderMap, TriggerError>>;

    /// Whether an answer says that another proof would be accepted.
    fn is_refused(&self, status: StatusCode, body: &[u8]) -> bool;

    /// Drops what was refused.
    fn forget(&self) -> BoxFuture<'_, ()>;
}

/// A way to get tokens.
pub(crate) trait Grant: Send + Sync {
    /// A token, and how long it lasts.
    ///
    /// # Errors
    /// There is none.
    fn fetch(&self) -> BoxFuture<'_, Result<(Secret, Duration), TriggerError>>;
}

/// Fetches tokens and keeps the last one.
pub(crate) struct TokenSource<G> {
    pub(crate) grant: G,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    last: Option<(Result<Secret, TriggerError>, Instant)>,
    /// When one was dropped.
    dropped: Option<Instant>,
}

impl<G: Grant> TokenSource<G> {
    /// Asks for nothing yet.
    pub(crate) fn new(grant: G) -> TokenSource<G> {
        TokenSource { grant, kept: Mutex::default() }
    }

    /// A token that is valid for a while; all who wait share one that is fetched.
    ///
    /// # Errors
    /// There is none.
    pub(crate) async fn token(&self) -> Result<Secret, TriggerError> {
        let mut kept = self.kept.lock().await;
        if let Some((last, until)) = &kept.last
            && Instant::now() < *until
        {
            return last.clone();
        }
        kept.last = None;
        match self.grant.fetch().await {
            Ok((token, lasts)) => {
                let until = Instant::now() + lasts.saturating_sub(EARLY);
                kept.last = Some((Ok(token.clone()), until));
                Ok(token)
            }
            Err(error) => {
                // An outage is what circuit breakers are for.
                if !error.is_outage() {
                    kept.last = Some((Err(error.clone()), Instant::now() + PAUSE));
                }
                Err(error)
            }
        }
    }

    /// Drops the token, since it was refused, unless another was a moment ago.
    pub(crate) async fn drop_refused(&self) {
        let mut kept = self.kept.lock().await;
        if kept.dropped.is_none_or(|dropped| dropped.elapsed() >= PAUSE) {
            *kept = Kept { last: None, dropped: Some(Instant::now()) };
        }
    }
}

impl<G: Grant> Proof for TokenSource<G> {
    fn headers<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<HeaderMap, TriggerError>> {
        Box::pin(async {
            let (token, mut headers) = (self.token().await?, HeaderMap::new());
            add_secret(&mut headers, AUTHORIZATION, &format!("Bearer {}", token.expose()))?;
            Ok(headers)
        })
    }

    fn is_refused(&self, status: StatusCode, _: &[u8]) -> bool {
        status == StatusCode::UNAUTHORIZED
    }

    fn forget(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.drop_refused())
    }
}

#[derive(Deserialize)]
struct Answer {
    access_token: String,
    /// A number of seconds, which some servers write as a text.
    #[serde(default)]
    expires_in: Value,
}

/// Why there is no token, in a word such as `invalid_client`.
#[derive(Default, Deserialize)]
struct Problem {
    #[serde(default)]
    error: String,
}

/// The token of an answer as OAuth 2.0 has it, and how long it lasts.
///
/// # Errors
/// It has none.
pub(crate) fn read(
    server: &Arc<str>,
    status: StatusCode,
    body: &[u8],
) -> Result<(Secret, Duration), TriggerError> {
    if !status.is_success() {
        // Not all of it: a server may repeat what it was sent.
        let Problem { error } = serde_json::from_slice(body).unwrap_or_default();
        let is_plain = |text: &String| text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        let error = Some(error).filter(is_plain).unwrap_or_default();
        return Err(refusal(server, status, error.as_bytes()));
    }
    // What is wrong with it may hold the token.
    let Answer { access_token, expires_in } = serde_json::from_slice(body)
        .map_err(|_| TriggerError::answer(format!("{server} answers without an access_token")))?;
    Ok((Secret::from(access_token), lasts(&expires_in)))
}

/// How long a token may be used; none at all is no answer.
fn lasts(expires_in: &Value) -> Duration {
    let seconds = match expires_in {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    let seconds = seconds.filter(|seconds| *seconds > 0);
    seconds.map_or(UNLIMITED, |seconds| Duration::from_secs(seconds.min(LONGEST_SECONDS)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn tokens_last_as_long_as_servers_say_within_a_day() {
        for (said, seconds) in [
            ("3600", 3600),
            ("\"3600\"", 3600),
            ("0", 300),
            ("null", 300),
            ("-5", 300),
            ("9223372036854775807", 86_400),
            ("18446744073709551615", 86_400),
        ] {
            let said: Value = serde_json::from_str(said).expect("JSON");
            assert_eq!(lasts(&said), Duration::from_secs(seconds), "{said}");
        }
    }

    /// Gives tokens with numbers, or refuses.
    struct Numbered {
        asked: AtomicU32,
        refuses: bool,
    }

    impl Grant for Numbered {
        fn fetch(&self) -> BoxFuture<'_, Result<(Secret, Duration), TriggerError>> {
            let number = self.asked.fetch_add(1, Ordering::Relaxed);
            Box::pin(async move {
                match self.refuses {
                    true => Err(TriggerError::answer(number.to_string())),
                    false => Ok((Secret::from(number.to_string()), Duration::from_secs(60))),
                }
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_and_refusals_are_kept_for_a_while() {
        for (refuses, lasts) in [(false, 50), (true, 10)] {
            let source = TokenSource::new(Numbered { asked: AtomicU32::new(0), refuses });
            let get = async || match source.token().await {
                Ok(token) => token.expose().to_owned(),
                Err(error) => error.to_string(),
            };
            assert_eq!((get().await, get().await), ("0".to_owned(), "0".to_owned()));
            tokio::time::sleep(Duration::from_secs(lasts - 1)).await;
            assert_eq!(get().await, "0");
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(get().await, "1", "it is too old");
            // However many are refused, there is one new token in a while.
            source.drop_refused().await;
            assert_eq!(get().await, "2");
            source.drop_refused().await;
            assert_eq!(get().await, "2");
            tokio::time::sleep(Duration::from_secs(10)).await;
            source.drop_refused().await;
            assert_eq!(get().await, "3");
        }
    }
}
