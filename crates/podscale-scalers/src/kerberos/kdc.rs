//! One question to a KDC, by TCP.

use crate::stream::Opener;
use crate::trigger::TriggerError;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The longest answer of a KDC.
const MOST_BYTES: u32 = 128 << 10;

/// Sends a request to a KDC at an address and reads the answer.
///
/// # Errors
/// It is not there, or what came is no answer.
pub(super) async fn exchange(
    kdc: &str,
    name: &Arc<str>,
    request: &[u8],
) -> Result<Vec<u8>, TriggerError> {
    let lost = |problem: String| TriggerError::unreachable(name.clone(), problem);
    let mut stream = match Opener::tcp(kdc).await {
        Ok(stream) => stream,
        Err(TriggerError::Unreachable { problem, .. }) => return Err(lost(problem.to_string())),
        Err(error) => return Err(error),
    };
    let length = u32::try_from(request.len()).map_err(|error| lost(error.to_string()))?;
    let mut ask = async || {
        stream.write_all(&[&length.to_be_bytes()[..], request].concat()).await?;
        stream.flush().await?;
        let length = stream.read_u32().await?;
        if length > MOST_BYTES {
            let problem = "it answers something that is not Kerberos, or too much";
            return Err(std::io::Error::other(problem));
        }
        let mut answer = vec![0; usize::try_from(length).unwrap_or_default()];
        stream.read_exact(&mut answer).await.map(|_| answer)
    };
    ask().await.map_err(|error| lost(error.to_string()))
}
