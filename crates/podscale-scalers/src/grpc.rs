//! Calls by gRPC, which is messages over HTTP/2: one answer, or one after another.

#[cfg(test)]
pub(crate) mod tests;

use crate::address::decode;
use crate::http::heard::{Hearing, LastWord};
use crate::http::{cause, refusal, without_tls};
use crate::tls::Tls;
use crate::trigger::TriggerError;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures::StreamExt;
use http::header::{CONTENT_TYPE, TE, USER_AGENT};
use http::response::Parts;
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use prost::Message;
use rustls::pki_types::ServerName;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// The largest message.
const MOST_BYTES: usize = 4 << 20;
/// Whether it is compressed, and how long it is: what comes before each message.
const HEAD_BYTES: usize = 5;
/// After how long a silent connection is asked whether it is still there, how often then, and how many times. By TCP:
/// servers hang up on those whose HTTP/2 asks more often than every five minutes.
const ALIVE: (Duration, Duration, u32) = (Duration::from_secs(30), Duration::from_secs(10), 3);

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// What calls one server. All calls share a connection.
pub(crate) struct Grpc {
    client: Client<Hearing<HttpsConnector<HttpConnector>>, Body>,
    origin: String,
    /// Why it has closed a connection.
    last: LastWord,
}

/// Where a server is, and how TLS is spoken to it.
pub(crate) struct Target<'a> {
    /// Host and port.
    pub(crate) authority: &'a str,
    /// None if TLS is not spoken.
    pub(crate) tls: Option<&'a Tls>,
    /// The name that its certificate has, if not that of the host; else empty.
    pub(crate) name: &'a str,
}

/// How many questions a method takes before it has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Questions {
    /// One: servers wait until it is said that there are no more.
    One,
    /// Many: it is not said before nobody listens.
    Many,
}

impl Grpc {
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// The certificates or the name cannot be used.
    pub(crate) fn new(target: &Target<'_>) -> Result<Grpc, TriggerError> {
        let (scheme, config) = match target.tls {
            Some(tls) => ("https", tls.config()?),
            None => ("http", without_tls()?),
        };
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let (silence, interval, retries) = ALIVE;
        tcp.set_keepalive(Some(silence));
        tcp.set_keepalive_interval(Some(interval));
        tcp.set_keepalive_retries(Some(retries));
        // What is sent and never acknowledged hides a silence from keepalive, for a quarter of an hour by default.
        #[cfg(target_os = "linux")]
        tcp.set_tcp_user_timeout(Some(silence + interval * retries));
        let mut builder = HttpsConnectorBuilder::new().with_tls_config(config).https_or_http();
        if !target.name.is_empty() {
            let name = ServerName::try_from(target.name.to_owned()).map_err(|_| {
                let problem = format!("{:?} is not the name of a server", target.name);
                TriggerError::Settings(problem.into())
            })?;
            builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
        }
        let connector = Hearing::new(builder.enable_http2().wrap_connector(tcp));
        let last = connector.last_word();
        let mut builder = Client::builder(TokioExecutor::new());
        builder.http2_only(true);
        let origin = format!("{scheme}://{}", target.authority);
        Ok(Grpc { client: builder.build(connector), origin, last })
    }

    /// Calls a method that answers once.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub(crate) async fn call<A: Message + Default>(
        &self,
        server: &Arc<str>,
        method: &str,
        question: &impl Message,
        headers: &HeaderMap,
    ) -> Result<A, TriggerError> {
        let body = Full::new(framed(question)).boxed_unsync();
        let (head, body) = self.send(server, method, headers, body).await?;
        let body = Limited::new(body, MOST_BYTES).collect().await;
        let body = body.map_err(|error| self.closed(server, cause(&*error)))?;
        // Where there is nothing but a status, it is among the headers.
        check(server, head.status, body.trailers().unwrap_or(&head.headers))?;
        let mut buffer = BytesMut::new();
        buffer.extend_from_slice(&body.to_bytes());
        match take(server, &mut buffer)? {
            Some(message) => decoded(server, message),
            None => Err(TriggerError::answer(format!("{server} answers {method} with nothing"))),
        }
    }

    /// Calls a method that answers again and again.
    ///
    /// # Errors
    /// As [`Grpc::call`].
    pub(crate) async fn listen(
        &self,
        server: &Arc<str>,
        method: &str,
        question: &impl Message,
        headers: &HeaderMap,
        questions: Questions,
    ) -> Result<Answers, TriggerError> {
        let (open, ended) = oneshot::channel();
        let body = match questions {
            Questions::One => Full::new(framed(question)).boxed_unsync(),
            Questions::Many => {
                let first = Ok::<_, Infallible>(Frame::data(framed(question)));
                // Ends when nobody listens any longer, so that the server does not go on.
                let end = futures::stream::once(ended).filter_map(|_| std::future::ready(None));
                StreamBody::new(futures::stream::iter([first]).chain(end)).boxed_unsync()
            }
        };
        let (head, body) = self.send(server, method, headers, body).await?;
        if head.headers.contains_key("grpc-status") || !head.status.is_success() {
            check(server, head.status, &head.headers)?;
        }
        Ok(Answers { body, buffer: BytesMut::new(), server: server.clone(), _open: open })
    }

    async fn send(
        &self,
        server: &Arc<str>,
        method: &str,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<(Parts, Incoming), TriggerError> {
        let request = Request::post(format!("{}/{method}", self.origin)).body(body);
        let mut request = request.map_err(|_| {
            TriggerError::Settings(format!("{server} cannot be asked: not an address").into())
        })?;
        let all = request.headers_mut();
        all.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        all.insert(TE, HeaderValue::from_static("trailers"));
        all.insert(USER_AGENT, HeaderValue::from_static("podscale"));
        all.extend(headers.clone());
        let closed = self.last.next();
        let answer = tokio::select! {
            biased;
            answer = self.client.request(request) => answer,
            // The client would go on with one connection after another.
            () = closed => return Err(self.closed(server, String::new())),
        };
        match answer {
            Ok(answer) => {
                self.last.forget();
                Ok(answer.into_parts())
            }
            // What was heard of an older connection is not why there is none now.
            Err(error) if error.is_connect() => Err(unreachable(server, cause(&error))),
            Err(error) => Err(self.closed(server, cause(&error))),
        }
    }

    /// A connection broke off: the server may have said why.
    fn closed(&self, server: &Arc<str>, known: String) -> TriggerError {
        unreachable(server, self.last.heard().unwrap_or(known))
    }
}

/// Answers that come one after another.
pub(crate) struct Answers {
    body: Incoming,
    buffer: BytesMut,
    server: Arc<str>,
    /// Dropped with them.
    _open: oneshot::Sender<()>,
}

impl Answers {
    /// The next one; none if the server has ended them in order.
    ///
    /// # Errors
    /// The connection broke off, or the server says what is wrong.
    pub(crate) async fn next<A: Message + Default>(&mut self) -> Result<Option<A>, TriggerError> {
        loop {
            if let Some(message) = take(&self.server, &mut self.buffer)? {
                return decoded(&self.server, message).map(Some);
            }
            let frame = match self.body.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(unreachable(&self.server, cause(&error))),
                Some(Ok(frame)) => frame,
            };
            match frame.into_data() {
                Ok(data) => self.buffer.extend_from_slice(&data),
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    return check(&self.server, StatusCode::OK, &trailers).map(|()| None);
                }
            }
        }
    }
}

/// A message with what comes before it.
fn framed(message: &impl Message) -> Bytes {
    let encoded = message.encode_to_vec();
    let mut framed = BytesMut::with_capacity(HEAD_BYTES + encoded.len());
    framed.put_u8(0);
    // What triggers say is short.
    framed.put_u32(u32::try_from(encoded.len()).unwrap_or(u32::MAX));
    framed.put_slice(&encoded);
    framed.freeze()
}

/// The first message of a buffer, if all of it is there.
fn take(server: &Arc<str>, buffer: &mut BytesMut) -> Result<Option<Bytes>, TriggerError> {
    let Some(&[compressed, a, b, c, d]) = buffer.first_chunk::<HEAD_BYTES>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if compressed != 0 || length > MOST_BYTES {
        let problem = "with a message that is compressed or too long";
        return Err(TriggerError::answer(format!("{server} answers {problem}")));
    }
    if buffer.len() < HEAD_BYTES + length {
        return Ok(None);
    }
    buffer.advance(HEAD_BYTES);
    Ok(Some(buffer.split_to(length).freeze()))
}

fn decoded<A: Message + Default>(server: &Arc<str>, message: Bytes) -> Result<A, TriggerError> {
    A::decode(message).map_err(|error| {
        TriggerError::answer(format!("{server} answers something else than expected: {error}"))
    })
}

fn unreachable(server: &Arc<str>, problem: String) -> TriggerError {
    TriggerError::unreachable(server.clone(), problem)
}

/// What a status of gRPC means.
fn check(server: &Arc<str>, status: StatusCode, headers: &HeaderMap) -> Result<(), TriggerError> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(code) = text("grpc-status") else {
        return Err(match status.is_success() {
            true => TriggerError::answer(format!("{server} does not answer as gRPC does")),
            false => refusal(server, status, b""),
        });
    };
    let message = decode(text("grpc-message").unwrap_or_default());
    let server = server.clone();
    Err(match code {
        "0" => return Ok(()),
        "4" => TriggerError::Late(server),
        "7" | "16" => TriggerError::Unauthorized { server, problem: message.into() },
        "14" => TriggerError::Unreachable { server, problem: message.into() },
        code => TriggerError::answer(format!("{server} gives no value: {message} (gRPC {code})")),
    })
}
