//! Connections that hear why a server has closed them. One that refuses a certificate says so after TLS is established,
//! and closes; whoever writes at that moment only learns that nobody is there. What it said is still to be read.

use futures::future::BoxFuture;
use http::Uri;
use hyper::rt::{Read, ReadBuf, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tower::Service;

/// How much a server may have said before its last word.
const MOST_READS: usize = 8;

/// Makes connections that hear.
#[derive(Clone)]
pub(crate) struct Hearing<C>(pub(crate) C);

impl<C> Service<Uri> for Hearing<C>
where
    C: Service<Uri>,
    C::Future: Send + 'static,
{
    type Response = Heard<C::Response>;
    type Error = C::Error;
    type Future = BoxFuture<'static, Result<Heard<C::Response>, C::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), C::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.0.call(uri);
        Box::pin(async move { connecting.await.map(Heard) })
    }
}

/// A connection that hears.
pub(crate) struct Heard<S>(S);

impl<S: Read + Unpin> Heard<S> {
    /// Why it was closed, if the server has said so; else what is known.
    fn reason(&mut self, context: &mut Context<'_>, known: io::Error) -> io::Error {
        for _ in 0..MOST_READS {
            let mut space = [0; 256];
            let mut buffer = ReadBuf::new(&mut space);
            match Pin::new(&mut self.0).poll_read(context, buffer.unfilled()) {
                // What TLS has to say; others know no more than that it is closed.
                Poll::Ready(Err(said)) if said.kind() == io::ErrorKind::InvalidData => return said,
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
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: Read + Write + Unpin> Write for Heard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.0).poll_write(context, bytes);
        self.hear(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.0).poll_flush(context);
        self.hear(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.0).poll_write_vectored(context, slices);
        self.hear(context, written)
    }
}

impl<S: Connection> Connection for Heard<S> {
    fn connected(&self) -> Connected {
        self.0.connected()
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
            let mut connection = Heard(Closed(said));
            let Poll::Ready(Err(error)) = Pin::new(&mut connection).poll_write(&mut context, b"x")
            else {
                panic!("it is closed")
            };
            assert_eq!(error.to_string(), expected);
        }
    }
}
