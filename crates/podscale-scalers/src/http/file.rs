//! Files of the controller that hold what it proves itself with in a cloud.

use crate::secret::Secret;
use crate::trigger::TriggerError;
use tokio::io::AsyncReadExt;

/// The longest file that is read.
const MOST_BYTES: u64 = 64 << 10;

/// What is in the file that a variable of the controller names.
///
/// # Errors
/// It cannot be read.
pub(crate) async fn read(variable: &str, path: &Secret) -> Result<Secret, TriggerError> {
    let mut text = String::new();
    let read = async {
        let file = tokio::fs::File::open(path.expose()).await?;
        file.take(MOST_BYTES).read_to_string(&mut text).await
    };
    read.await.map_err(|error| {
        TriggerError::Settings(format!("{variable} of the controller: {error}").into())
    })?;
    Ok(Secret::from(text.trim()))
}
