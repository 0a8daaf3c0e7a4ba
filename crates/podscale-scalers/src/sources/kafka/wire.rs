//! Requests and answers of Kafka's protocol, in versions that brokers from 1.0 to 4 have.

use crate::stream::Stream;
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The longest answer.
const MOST_BYTES: usize = 8 << 20;

/// A kind of request, with its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Api(pub(super) i16, pub(super) i16);

/// The offsets of partitions.
pub(super) const LIST_OFFSETS: Api = Api(2, 1);
/// Topics and who leads their partitions.
pub(super) const METADATA: Api = Api(3, 4);
/// What a group has committed.
pub(super) const OFFSET_FETCH: Api = Api(9, 2);
/// Who manages a group.
pub(super) const FIND_COORDINATOR: Api = Api(10, 0);
/// How it is proved who asks.
pub(super) const SASL_HANDSHAKE: Api = Api(17, 1);
/// The proof.
pub(super) const SASL_AUTHENTICATE: Api = Api(36, 0);

/// A connection; requests are numbered.
pub(super) struct Connection {
    stream: Stream,
    number: i32,
}

impl Connection {
    /// Speaks over a stream.
    pub(super) fn new(stream: Stream) -> Connection {
        Connection { stream, number: 0 }
    }

    /// Sends a request and gives the answer to it.
    ///
    /// # Errors
    /// The connection broke off, or what came is no answer.
    pub(super) async fn call(&mut self, api: Api, request: &Writer) -> io::Result<Vec<u8>> {
        self.number = self.number.wrapping_add(1);
        let mut head = Writer::default();
        head.i16(api.0).i16(api.1).i32(self.number).text("podscale");
        let length = head.0.len().saturating_add(request.0.len());
        let length = i32::try_from(length).map_err(io::Error::other)?;
        let all = [&length.to_be_bytes()[..], &head.0, &request.0].concat();
        self.stream.write_all(&all).await?;
        self.stream.flush().await?;
        let length = self.stream.read_i32().await?;
        let length =
            usize::try_from(length).ok().filter(|length| (4..=MOST_BYTES).contains(length));
        let Some(length) = length else {
            return Err(wrong("it answers something that is not Kafka, or too much"));
        };
        let number = self.stream.read_i32().await?;
        if number != self.number {
            return Err(wrong("it answers something that was not asked"));
        }
        let mut answer = vec![0; length - 4];
        self.stream.read_exact(&mut answer).await?;
        Ok(answer)
    }
}

pub(super) fn wrong(problem: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

/// A request that is written.
#[derive(Debug, Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn i8(&mut self, value: i8) -> &mut Writer {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(super) fn i16(&mut self, value: i16) -> &mut Writer {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(super) fn i32(&mut self, value: i32) -> &mut Writer {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(super) fn i64(&mut self, value: i64) -> &mut Writer {
        self.0.extend(value.to_be_bytes());
        self
    }

    /// How many things follow.
    pub(super) fn count(&mut self, count: usize) -> &mut Writer {
        self.i32(i32::try_from(count).unwrap_or(i32::MAX))
    }

    /// A text; names of Kafka are short, and what is cut off is not found.
    pub(super) fn text(&mut self, text: &str) -> &mut Writer {
        let length = i16::try_from(text.len()).unwrap_or(i16::MAX);
        self.i16(length);
        self.0.extend(text.bytes().take(usize::from(length.unsigned_abs())));
        self
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> &mut Writer {
        self.count(bytes.len());
        self.0.extend(bytes);
        self
    }
}

/// What is left of an answer.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk::<N>().ok_or_else(cut_off)?;
        self.0 = rest;
        Ok(*bytes)
    }

    pub(super) fn i8(&mut self) -> io::Result<i8> {
        self.array().map(i8::from_be_bytes)
    }

    pub(super) fn i16(&mut self) -> io::Result<i16> {
        self.array().map(i16::from_be_bytes)
    }

    pub(super) fn i32(&mut self) -> io::Result<i32> {
        self.array().map(i32::from_be_bytes)
    }

    pub(super) fn i64(&mut self) -> io::Result<i64> {
        self.array().map(i64::from_be_bytes)
    }

    fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or_else(cut_off)?;
        self.0 = rest;
        Ok(bytes.to_vec())
    }

    /// A text; one that is not there is empty.
    pub(super) fn text(&mut self) -> io::Result<String> {
        let length = usize::try_from(self.i16()?).unwrap_or(0);
        Ok(String::from_utf8_lossy(&self.take(length)?).into_owned())
    }

    pub(super) fn bytes(&mut self) -> io::Result<Vec<u8>> {
        let length = usize::try_from(self.i32()?).unwrap_or(0);
        self.take(length)
    }

    /// Things one after another; a list that is not there is empty.
    pub(super) fn list<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> io::Result<T>,
    ) -> io::Result<Vec<T>> {
        let count = usize::try_from(self.i32()?).unwrap_or(0);
        // Each takes at least a byte, so that a wrong count ends with the answer.
        (0..count).map(|_| read(self)).collect()
    }
}

fn cut_off() -> io::Error {
    wrong("its answer is cut off")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut writer = Writer::default();
        writer.i8(-1).i16(-2).i32(3).i64(-4).text("a").bytes(b"bc").count(2).text("d").text("e");
        let mut reader = Reader(&writer.0);
        assert_eq!(reader.i8().expect("a number"), -1);
        assert_eq!(reader.i16().expect("a number"), -2);
        assert_eq!(reader.i32().expect("a number"), 3);
        assert_eq!(reader.i64().expect("a number"), -4);
        assert_eq!(reader.text().expect("a text"), "a");
        assert_eq!(reader.bytes().expect("bytes"), b"bc");
        assert_eq!(reader.list(Reader::text).expect("a list"), ["d", "e"]);
        assert!(reader.i8().is_err(), "there is no more");
    }

    #[test]
    fn what_is_not_there_is_empty_and_wrong_counts_end() {
        let absent = [0xFF; 10];
        let mut reader = Reader(&absent);
        assert_eq!(reader.text().expect("none"), "");
        assert_eq!(reader.list(Reader::i8).expect("none"), Vec::<i8>::new());
        assert_eq!(reader.bytes().expect("none"), b"");
        assert!(Reader(&[0x7F, 0xFF, 0xFF, 0xFF, 1]).list(Reader::i8).is_err());
        assert!(Reader(&[0, 9, b'a']).text().is_err());
    }

    #[tokio::test]
    async fn answers_are_those_to_the_request() {
        for (bytes, expected) in [
            (vec![0, 0, 0, 5, 0, 0, 0, 1, 7], "[7]"),
            (vec![0, 0, 0, 5, 0, 0, 0, 9, 7], "it answers something that was not asked"),
            (vec![0, 0, 0, 1, 0], "it answers something that is not Kafka, or too much"),
            (b"HTTP/1.1".to_vec(), "it answers something that is not Kafka, or too much"),
            (vec![0, 0, 0, 9, 0, 0, 0, 1], "early eof"),
        ] {
            let (mut far, near) = tokio::io::duplex(1 << 12);
            far.write_all(&bytes).await.expect("written");
            far.shutdown().await.expect("ended");
            let found = Connection::new(Box::new(near)).call(METADATA, &Writer::default()).await;
            let found = found.map_or_else(|error| error.to_string(), |found| format!("{found:?}"));
            assert_eq!(found, expected, "{bytes:?}");
        }
    }
}
