//! Frames and methods of AMQP 0-9-1, as far as asking for a queue needs them.

use crate::stream::Stream;
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const METHOD: u8 = 1;
const HEARTBEAT: u8 = 8;
const FRAME_END: u8 = 0xCE;
/// The largest frame: the broker's first one lists all that it can do.
const MOST_FRAME_BYTES: u32 = 128 << 10;
/// How many heartbeats in a row are passed over.
const MOST_HEARTBEATS: usize = 100;

/// A connection.
pub(super) struct Connection(Stream);

/// A method that came.
pub(super) struct Method(Vec<u8>);

/// What is left of a method's arguments; beyond their end there are zeros.
pub(super) struct Arguments<'a>(&'a [u8]);

impl Connection {
    /// Speaks over a stream.
    pub(super) fn new(stream: Stream) -> Connection {
        Connection(stream)
    }

    /// Says which protocol is spoken.
    ///
    /// # Errors
    /// The connection broke off.
    pub(super) async fn greet(&mut self) -> io::Result<()> {
        self.0.write_all(b"AMQP\x00\x00\x09\x01").await?;
        self.0.flush().await
    }

    /// Sends a method.
    ///
    /// # Errors
    /// The connection broke off.
    pub(super) async fn send(&mut self, channel: u16, payload: &[u8]) -> io::Result<()> {
        let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
        let mut frame = vec![METHOD];
        frame.extend(channel.to_be_bytes());
        frame.extend(length.to_be_bytes());
        frame.extend(payload);
        frame.push(FRAME_END);
        self.0.write_all(&frame).await?;
        self.0.flush().await
    }

    /// The next method; heartbeats are passed over.
    ///
    /// # Errors
    /// The connection broke off, or what came is no method.
    pub(super) async fn method(&mut self) -> io::Result<Method> {
        for _ in 0..MOST_HEARTBEATS {
            let mut head = [0; 7];
            self.0.read_exact(&mut head).await?;
            let [kind, _, _, length @ ..] = head;
            let length = u32::from_be_bytes(length);
            if kind == b'A' {
                return Err(wrong("it speaks another version of AMQP than 0-9-1"));
            }
            if length > MOST_FRAME_BYTES {
                return Err(wrong("it answers something that is not AMQP"));
            }
            let mut payload = vec![0; length as usize + 1];
            self.0.read_exact(&mut payload).await?;
            if payload.pop() != Some(FRAME_END) {
                return Err(wrong("it answers something that is not AMQP"));
            }
            match kind {
                METHOD if payload.len() >= 4 => return Ok(Method(payload)),
                HEARTBEAT => {}
                _ => return Err(wrong("it answers something that is not a method")),
            }
        }
        Err(wrong("it sends nothing but heartbeats"))
    }
}

fn wrong(problem: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

impl Method {
    /// Its class and number.
    pub(super) fn id(&self) -> (u16, u16) {
        let mut all = Arguments(&self.0);
        (all.u16(), all.u16())
    }

    /// Its arguments.
    pub(super) fn arguments(&self) -> Arguments<'_> {
        Arguments(self.0.get(4..).unwrap_or_default())
    }
}

impl Arguments<'_> {
    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk::<N>() {
            Some((bytes, rest)) => {
                self.0 = rest;
                *bytes
            }
            None => {
                self.0 = &[];
                [0; N]
            }
        }
    }

    pub(super) fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.bytes())
    }

    pub(super) fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.bytes())
    }

    /// A text of up to 255 bytes.
    pub(super) fn short_text(&mut self) -> String {
        let [length] = self.bytes();
        let length = usize::from(length).min(self.0.len());
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        String::from_utf8_lossy(text).into_owned()
    }
}

/// A method without arguments.
pub(super) fn method((class, number): (u16, u16)) -> Vec<u8> {
    [class.to_be_bytes(), number.to_be_bytes()].concat()
}

fn short(text: &str) -> Vec<u8> {
    let bytes = &text.as_bytes()[..text.len().min(255)];
    // Cut off above.
    let length = u8::try_from(bytes.len()).unwrap_or(u8::MAX);
    [&[length][..], bytes].concat()
}

fn long(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes()[..], bytes].concat()
}

/// Who asks. A broker that refuses is asked to say so before it hangs up.
pub(super) fn start_ok(mechanism: &str, response: &str) -> Vec<u8> {
    let name = |name: &str, kind: u8| [short(name), vec![kind]].concat();
    let capabilities = [name("authentication_failure_close", b't'), vec![1]].concat();
    let properties = [
        name("product", b'S'),
        long(b"podscale"),
        name("connection_name", b'S'),
        long(b"podscale"),
        name("capabilities", b'F'),
        long(&capabilities),
    ]
    .concat();
    [
        method((10, 11)),
        long(&properties),
        short(mechanism),
        long(response.as_bytes()),
        short("en_US"),
    ]
    .concat()
}

/// What the broker proposes, but without heartbeats: a connection that is gone is noticed when it is used.
pub(super) fn tune_ok(tune: &Method) -> Vec<u8> {
    let mut proposed = tune.arguments();
    let (channels, frame) = (proposed.u16(), proposed.u32());
    let none: u16 = 0;
    let parts = [&channels.to_be_bytes()[..], &frame.to_be_bytes(), &none.to_be_bytes()].concat();
    [method((10, 31)), parts].concat()
}

/// Which virtual host.
pub(super) fn open(vhost: &str) -> Vec<u8> {
    [method((10, 40)), short(vhost), short(""), vec![0]].concat()
}

/// A channel.
pub(super) fn channel_open() -> Vec<u8> {
    [method((20, 10)), short("")].concat()
}

/// A queue that must be there already.
pub(super) fn declare_passively(queue: &str) -> Vec<u8> {
    const PASSIVE: u8 = 1;
    [method((50, 10)), vec![0, 0], short(queue), vec![PASSIVE], long(&[])].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(bytes: &[u8]) -> String {
        let (mut far, near) = tokio::io::duplex(1 << 12);
        far.write_all(bytes).await.expect("written");
        drop(far);
        match Connection::new(Box::new(near)).method().await {
            Ok(method) => {
                let mut arguments = method.arguments();
                let text = arguments.short_text();
                format!("{:?} {text:?} {} {}", method.id(), arguments.u32(), arguments.u32())
            }
            Err(error) => error.to_string(),
        }
    }

    #[tokio::test]
    async fn methods_are_read_within_bounds() {
        let frame = |kind: u8, payload: &[u8]| {
            let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
            [&[kind, 0, 1][..], &length, payload, &[FRAME_END]].concat()
        };
        let declared = [&[0, 50, 0, 11, 1, b'q'][..], &7_u32.to_be_bytes(), &[0, 0, 0, 2]].concat();
        let beaten = [frame(HEARTBEAT, &[]), frame(METHOD, &declared)].concat();
        for (bytes, expected) in [
            (frame(METHOD, &declared), "(50, 11) \"q\" 7 2"),
            (beaten, "(50, 11) \"q\" 7 2"),
            (frame(METHOD, &[0, 10, 0, 30, 200]), "(10, 30) \"\" 0 0"),
            (frame(METHOD, &[0]), "it answers something that is not a method"),
            (b"AMQP\x00\x00\x09\x01".to_vec(), "it speaks another version of AMQP than 0-9-1"),
            (b"HTTP/1.1 400".to_vec(), "it answers something that is not AMQP"),
            (vec![1, 0, 0, 0, 0, 0, 1, 9, 9], "it answers something that is not AMQP"),
            (vec![1, 0], "early eof"),
        ] {
            assert_eq!(read(&bytes).await, expected, "{bytes:?}");
        }
    }
}
