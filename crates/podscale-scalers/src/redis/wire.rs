//! Redis' wire protocol (RESP2): commands out, replies in, each within bounds.

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use crate::stream::Stream;
use std::io;

/// The longest line of a reply.
const MOST_LINE_BYTES: u64 = 64 << 10;
/// The longest text in a reply.
const MOST_TEXT_BYTES: usize = 1 << 20;
/// How many elements a list in a reply has at most.
const MOST_ELEMENTS: usize = 10_000;
/// How deep lists are in lists at most.
const MOST_DEPTH: usize = 8;

/// What Redis answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    /// A word such as `OK`.
    Status(String),
    /// Why not: a word in capitals, and more.
    Error(String),
    /// A number.
    Integer(i64),
    /// A text; what is no UTF-8 in it is replaced.
    Text(String),
    /// A list.
    List(Vec<Reply>),
    /// Nothing.
    Nil,
}

impl Reply {
    /// The number that it is.
    pub(crate) fn integer(&self) -> Option<i64> {
        if let Reply::Integer(number) = self { Some(*number) } else { None }
    }

    /// The text that it is.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Reply::Status(text) | Reply::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The elements that it has.
    pub(crate) fn list(&self) -> Option<&[Reply]> {
        if let Reply::List(list) = self { Some(list) } else { None }
    }
}

/// A connection that is in order: every command was answered.
pub(super) struct Connection(BufReader<Stream>);

impl Connection {
    /// Speaks over a stream.
    pub(super) fn new(stream: Stream) -> Connection {
        // Replies are short, and many connections wait.
        Connection(BufReader::with_capacity(512, stream))
    }

    /// Sends a command and reads the reply to it.
    ///
    /// # Errors
    /// The connection broke off, or what came is no reply.
    pub(super) async fn command(&mut self, words: &[&str]) -> io::Result<Reply> {
        self.0.write_all(&encode(words)).await?;
        self.0.flush().await?;
        self.reply().await
    }

    /// Reads a reply. Lists are read without recursion: the innermost that is not complete comes last.
    async fn reply(&mut self) -> io::Result<Reply> {
        let mut open: Vec<(usize, Vec<Reply>)> = Vec::new();
        loop {
            let mut reply = match self.element().await? {
                Element::Reply(reply) => reply,
                Element::List(0) => Reply::List(Vec::new()),
                Element::List(length) if open.len() < MOST_DEPTH => {
                    open.push((length, Vec::new()));
                    continue;
                }
                Element::List(_) => return Err(wrong("lists too deep in each other")),
            };
            loop {
                let Some((length, list)) = open.last_mut() else { return Ok(reply) };
                list.push(reply);
                if list.len() < *length {
                    break;
                }
                let Some((_, list)) = open.pop() else {
                    return Err(wrong("a list without an end"));
                };
                reply = Reply::List(list);
            }
        }
    }

    async fn element(&mut self) -> io::Result<Element> {
        let line = self.line().await?;
        let Some(kind) = line.chars().next().filter(char::is_ascii) else {
            return Err(wrong("an empty line"));
        };
        let rest = &line[1..];
        let number = || rest.parse::<i64>().map_err(|_| wrong("a number that is none"));
        Ok(Element::Reply(match kind {
            '+' => Reply::Status(rest.to_owned()),
            '-' => Reply::Error(rest.to_owned()),
            ':' => Reply::Integer(number()?),
            '$' => match usize::try_from(number()?) {
                Ok(length) => Reply::Text(self.text(length).await?),
                Err(_) => Reply::Nil,
            },
            '*' => match usize::try_from(number()?) {
                Ok(length) if length <= MOST_ELEMENTS => return Ok(Element::List(length)),
                Ok(_) => return Err(wrong("a list that is too long")),
                Err(_) => Reply::Nil,
            },
            _ => return Err(wrong("no reply of Redis")),
        }))
    }

    async fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        let read = (&mut self.0).take(MOST_LINE_BYTES).read_line(&mut line).await?;
        if read == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        if !line.ends_with('\n') {
            return Err(wrong("a line without an end"));
        }
        line.truncate(line.trim_end_matches(['\r', '\n']).len());
        Ok(line)
    }

    async fn text(&mut self, length: usize) -> io::Result<String> {
        if length > MOST_TEXT_BYTES {
            return Err(wrong("a text that is too long"));
        }
        let mut bytes = vec![0; length + 2];
        self.0.read_exact(&mut bytes).await?;
        bytes.truncate(length);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

enum Element {
    Reply(Reply),
    List(usize),
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("it answers {what}; is it Redis?"))
}

/// A command on the wire.
fn encode(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(bytes: &[u8]) -> String {
        let (mut far, near) = tokio::io::duplex(1 << 16);
        far.write_all(bytes).await.expect("written");
        drop(far);
        match Connection::new(Box::new(near)).reply().await {
            Ok(reply) => format!("{reply:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[tokio::test]
    async fn replies_are_read_within_bounds() {
        for (bytes, expected) in [
            ("+OK\r\n", "Status(\"OK\")"),
            ("-ERR no\r\n", "Error(\"ERR no\")"),
            (":12\r\n", "Integer(12)"),
            ("$5\r\na\r\nbc\r\n", "Text(\"a\\r\\nbc\")"),
            ("$-1\r\n", "Nil"),
            ("*-1\r\n", "Nil"),
            ("*0\r\n", "List([])"),
            (
                "*2\r\n:1\r\n*2\r\n+a\r\n*0\r\n",
                "List([Integer(1), List([Status(\"a\"), List([])])])",
            ),
            ("*99999\r\n", "it answers a list that is too long; is it Redis?"),
            ("$9999999\r\n", "it answers a text that is too long; is it Redis?"),
            (&"*1\r\n".repeat(20), "it answers lists too deep in each other; is it Redis?"),
            ("HTTP/1.1 400 Bad Request\r\n", "it answers no reply of Redis; is it Redis?"),
            (":x\r\n", "it answers a number that is none; is it Redis?"),
            ("+OK", "it answers a line without an end; is it Redis?"),
            ("", "unexpected end of file"),
            ("$5\r\nab", "early eof"),
        ] {
            assert_eq!(read(bytes.as_bytes()).await, expected, "{bytes:?}");
        }
    }

    #[test]
    fn commands_are_lists_of_texts() {
        assert_eq!(encode(&["LLEN", "é"]), "*2\r\n$4\r\nLLEN\r\n$2\r\né\r\n".as_bytes());
    }
}
