//! Connections that hear why a server has closed them. One that refuses a certificate says so after TLS is established,
//! and closes; whoever writes at that moment only learns that nobody is there. What it said is still to be read.

use futures::future::BoxFuture;
use http::Uri;
use hyper::rt::{Read, ReadBuf, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use parking_lot::Mutex;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::Notify;
use tower::Service;

/// How much a server may have said before its last word.
const MOST_READS: usize = 8;

/// What a server said last of all when it closed a connection. With HTTP/2 whoever waits for an answer may only learn
/// that the connection is gone, or not even that: the request is sent over another one, which is closed as well.
#[derive(Clone, Default)]
pub(crate) struct LastWord(Arc<Said>);

#[derive(Default)]
struct Said {
    text: Mutex<Option<String>>,
    again: Notify,
}

impl LastWord {
    /// Why a connection was closed, unless the server has answered since.
    pub(crate) fn heard(&self) -> Option<String> {
        self.0.text.lock().clone()
    }

    /// Waits until a connection is closed with a word, from now on.
    pub(crate) fn next(&self) -> impl Future<Output = ()> + use<'_> {
        let mut said = Box::pin(self.0.again.notified());
        said.as_mut().enable();
        said
    }

    /// The server has answered.
    pub(crate) fn forget(&self) {
        *self.0.text.lock() = None;
    }

    /// Only TLS has something to say; others know no more than that it is closed.
    fn note(&self, error: &io::Error) -> bool {
        let is_said = error.kind() == io::ErrorKind::InvalidData;
        if is_said {
            *self.0.text.lock() = Some(error.to_string());
            self.0.again.notify_waiters();
        }
        is_said
    }
}

/// Makes connections that hear.
#[derive(Clone)]
pub(crate) struct Hearing<C> {
    connector: C,
    last: LastWord,
}

impl<C> Hearing<C> {
    /// Hears on the connections of another one.
    pub(crate) fn new(connector: C) -> Hearing<C> {
        Hearing { connector, last: LastWord::default() }
    }

    /// What is heard on all of them.
    pub(crate) fn last_word(&self) -> LastWord {
        self.last.clone()
    }
}

impl<C> Service<Uri> for Hearing<C>
where
    C: Service<Uri>,
    C::Future: Send + 'static,
{
    type Response = Heard<C::Response>;
    type Error = C::Error;
    type Future = BoxFuture<'static, Result<Heard<C::Response>, C::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), C::Error>> {
        self.connector.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (connecting, last) = (self.connector.call(uri), self.last.clone());
        Box::pin(async move { Ok(Heard { stream: connecting.await?, last }) })
    }
}

/// A connection that hears.
pub(crate) struct Heard<S> {
    stream: S,
    last: LastWord,
}

impl<S: Read + Unpin> Heard<S> {
    /// Why it was closed, if the server has said so; else what is known.
    fn reason(&mut self, context: &mut Context<'_>, known: io::Error) -> io::Error {
        for _ in 0..MOST_READS {
            let mut space = [0; 256];
            let mut buffer = ReadBuf::new(&mut space);
            match Pin::new(&mut self.stream).poll_read(context, buffer.unfilled()) {
                Poll::Ready(Err(said)) if self.last.note(&said) => return said,
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {}
                _ => break,
            }
        }
        known
    }

    fn hear<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        written.map_err(|error| self.reason(context, error))
    }
}

impl<S: Read + Unpin> Read for Heard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer).map_err(|error| {
            self.last.note(&error);
            error
        })
    }
}

impl<S: Read + Write + Unpin> Write for Heard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.hear(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.hear(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.hear(context, written)
    }
}

impl<S: Connection> Connection for Heard<S> {
    fn connected(&self) -> Connected {
        self.stream.connected()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes nothing, and has something to be read, one after another.
    struct Closed(Vec<io::Result<&'static [u8]>>);

    impl Read for Closed {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            mut buffer: ReadBufCursor<'_>,
        ) -> Poll<io::Result<()>> {
            match self.0.pop() {
                None => Poll::Pending,
                Some(read) => Poll::Ready(read.map(|bytes| buffer.put_slice(bytes))),
            }
        }
    }

    impl Write for Closed {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn what_a_server_said_last_is_why_nothing_can_be_written() {
        let alert = || Err(io::Error::new(io::ErrorKind::InvalidData, "received fatal alert"));
        let reset = || Err(io::Error::from(io::ErrorKind::ConnectionReset));
        for (said, expected) in [
            (vec![alert()], "received fatal alert"),
            (vec![alert(), Ok(&b"settings"[..])], "received fatal alert"),
            (vec![], "broken pipe"),
            (vec![Ok(&b""[..])], "broken pipe"),
            (vec![reset()], "broken pipe"),
            ((0..100).map(|_| Ok(&b"more"[..])).collect(), "broken pipe"),
        ] {
            let mut context = Context::from_waker(std::task::Waker::noop());
            let last = LastWord::default();
            let mut connection = Heard { stream: Closed(said), last: last.clone() };
            let Poll::Ready(Err(error)) = Pin::new(&mut connection).poll_write(&mut context, b"x")
            else {
                panic!("it is closed")
            };
            assert_eq!(error.to_string(), expected);
            assert_eq!(last.heard().is_some(), expected == "received fatal alert");
            last.forget();
            assert_eq!(last.heard(), None);
        }
    }

    #[test]
    fn what_somebody_else_reads_is_heard_too() {
        let mut context = Context::from_waker(std::task::Waker::noop());
        let alert = io::Error::new(io::ErrorKind::InvalidData, "received fatal alert");
        let last = LastWord::default();
        let mut connection = Heard { stream: Closed(vec![Err(alert)]), last: last.clone() };
        let mut space = [0; 8];
        let mut buffer = ReadBuf::new(&mut space);
        let read = Pin::new(&mut connection).poll_read(&mut context, buffer.unfilled());
        assert!(matches!(read, Poll::Ready(Err(_))));
        assert_eq!(last.heard().as_deref(), Some("received fatal alert"));
    }
}
