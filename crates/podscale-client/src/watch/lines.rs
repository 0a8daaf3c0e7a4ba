//! The changes of a watch come one in a line.

use crate::call::CallError;
use http_body_util::BodyExt;
use kube::client::Body;
use memchr::memchr;

/// The longest line of a watch.
const LINE_LIMIT_BYTES: usize = 16 * 1024 * 1024;

/// The lines of a body, as they come in.
pub(super) struct Lines {
    body: Body,
    buffer: Vec<u8>,
    searched: usize,
}

impl Lines {
    pub(super) fn of(body: Body) -> Lines {
        Lines { body, buffer: Vec::new(), searched: 0 }
    }

    /// The next one, with its end; nothing at the end of the body.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, CallError> {
        loop {
            let rest = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(place) = memchr(b'\n', rest) {
                let after = self.searched + place + 1;
                let tail = self.buffer.split_off(after);
                let line = std::mem::replace(&mut self.buffer, tail);
                self.searched = 0;
                return Ok(Some(line));
            }
            self.searched = self.buffer.len();
            if self.searched > LINE_LIMIT_BYTES {
                return Err(CallError::Unreadable("a line of a watch is too long".to_owned()));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        self.buffer.extend_from_slice(data);
                    }
                }
                Some(Err(error)) => return Err(CallError::Unreachable(error.to_string())),
                None => return Ok(None),
            }
        }
    }
}
