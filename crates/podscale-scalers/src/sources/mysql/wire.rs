//! Packets of MySQL's protocol, as far as asking needs them.

use crate::stream::Stream;
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The longest packet that is read.
const MOST_BYTES: usize = 1 << 20;

/// A connection; packets are numbered within a command.
pub(super) struct Connection {
    pub(super) stream: Stream,
    number: u8,
}

impl Connection {
    /// Speaks over a stream, from a packet's number on.
    pub(super) fn new(stream: Stream, number: u8) -> Connection {
        Connection { stream, number }
    }

    /// The stream, to go over to TLS on it, and the number of the next packet.
    pub(super) fn into_parts(self) -> (Stream, u8) {
        (self.stream, self.number)
    }

    /// Begins a command.
    pub(super) fn begin(&mut self) {
        self.number = 0;
    }

    /// Sends a packet.
    ///
    /// # Errors
    /// The connection broke off, or the packet is too long.
    pub(super) async fn send(&mut self, payload: &[u8]) -> io::Result<()> {
        if payload.len() > MOST_BYTES {
            return Err(wrong("the query is too long"));
        }
        let [a, b, c, _] = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes();
        let mut packet = vec![a, b, c, self.number];
        self.number = self.number.wrapping_add(1);
        packet.extend(payload);
        self.stream.write_all(&packet).await?;
        self.stream.flush().await
    }

    /// The next packet.
    ///
    /// # Errors
    /// The connection broke off, or what came is no packet.
    pub(super) async fn receive(&mut self) -> io::Result<Vec<u8>> {
        let mut head = [0; 4];
        self.stream.read_exact(&mut head).await?;
        let [a, b, c, number] = head;
        let length = u32::from_le_bytes([a, b, c, 0]) as usize;
        if length > MOST_BYTES || number != self.number {
            return Err(wrong("it answers something that is not MySQL, or too much"));
        }
        self.number = number.wrapping_add(1);
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload).await?;
        Ok(payload)
    }
}

pub(super) fn wrong(problem: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

/// What is left of a packet; beyond its end there are zeros.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn array<const N: usize>(&mut self) -> [u8; N] {
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

    pub(super) fn bytes(&mut self, length: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    /// Up to a zero, which is passed over.
    pub(super) fn text(&mut self) -> &'a [u8] {
        let length = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        let text = self.bytes(length);
        self.bytes(1);
        text
    }

    /// A length that is written in as many bytes as it needs; none stands for NULL.
    pub(super) fn length(&mut self) -> Option<usize> {
        let [first] = self.array();
        let length = match first {
            0xFB => return None,
            0xFC => u64::from(u16::from_le_bytes(self.array())),
            0xFD => {
                let [a, b, c] = self.array();
                u64::from(u32::from_le_bytes([a, b, c, 0]))
            }
            0xFE => u64::from_le_bytes(self.array()),
            small => u64::from(small),
        };
        Some(usize::try_from(length).unwrap_or(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_take_as_many_bytes_as_they_need() {
        for (bytes, expected) in [
            (&[5][..], Some(5)),
            (&[0xFB][..], None),
            (&[0xFC, 1, 1][..], Some(257)),
            (&[0xFD, 0, 0, 1][..], Some(65536)),
            (&[0xFE, 1, 0, 0, 0, 0, 0, 0, 0][..], Some(1)),
            (&[][..], Some(0)),
            (&[0xFC, 1][..], Some(0)),
        ] {
            assert_eq!(Reader(bytes).length(), expected, "{bytes:?}");
        }
        let mut reader = Reader(b"ab\0c");
        assert_eq!(
            (reader.text(), reader.text(), reader.text()),
            (&b"ab"[..], &b"c"[..], &b""[..])
        );
    }

    #[tokio::test]
    async fn packets_are_read_within_bounds() {
        for (bytes, expected) in [
            (&[1, 0, 0, 0, 7][..], "[7]"),
            (&[0, 0, 0, 0][..], "[]"),
            (&[1, 0, 0, 9, 7][..], "it answers something that is not MySQL, or too much"),
            (&b"HTTP/1.1 400"[..], "it answers something that is not MySQL, or too much"),
            (&[2, 0, 0, 0, 7][..], "early eof"),
        ] {
            let (mut far, near) = tokio::io::duplex(1 << 12);
            far.write_all(bytes).await.expect("written");
            drop(far);
            let found = match Connection::new(Box::new(near), 0).receive().await {
                Ok(packet) => format!("{packet:?}"),
                Err(error) => error.to_string(),
            };
            assert_eq!(found, expected, "{bytes:?}");
        }
    }
}
