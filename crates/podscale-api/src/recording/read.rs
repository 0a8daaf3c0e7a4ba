//! Reading Recordings one line at a time, plain or compressed, in bounded memory.

use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

use flate2::bufread::MultiGzDecoder;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{API_VERSION, JobsRecording, KIND, Recording};
use crate::keda::scaled_job::KIND as SCALED_JOB;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const BUFFER_BYTES: usize = 128 * 1024;
/// Longer lines are refused unless the reader is set otherwise.
const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// Why Recordings could not be read, and where.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The input failed, or what is compressed is damaged.
    #[error("line {line}: {source}")]
    Input {
        /// The line that was being read, from 1.
        line: u64,
        /// What went wrong.
        source: io::Error,
    },
    /// A line is too long to be held in memory.
    #[error("line {line}: longer than {limit} bytes")]
    TooLong {
        /// The line, from 1.
        line: u64,
        /// The longest line that is read.
        limit: usize,
    },
    /// A line is not JSON, or has the wrong value somewhere.
    #[error("line {line}, column {column}{}: {message}", in_field(.field))]
    Json {
        /// The line, from 1.
        line: u64,
        /// The column, from 1.
        column: usize,
        /// The path of the field, such as `steps[3].time`; empty if it is the line as a whole.
        field: String,
        /// What is wrong with it.
        message: String,
    },
    /// A line holds some other kind of object.
    #[error("line {line}: a {found}, not a {API_VERSION} {KIND}")]
    Kind {
        /// The line, from 1.
        line: u64,
        /// The version and kind of the object.
        found: String,
    },
}

/// A Recording of either form.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum AnyRecording {
    /// Of an autoscaler that gives its target a size.
    Scale(Box<Recording>),
    /// Of a ScaledJob.
    Jobs(Box<JobsRecording>),
}

impl AnyRecording {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            AnyRecording::Scale(recording) => &recording.metadata.name,
            AnyRecording::Jobs(recording) => &recording.metadata.name,
        }
    }

    /// How many steps it has.
    #[must_use]
    pub fn step_count(&self) -> usize {
        match self {
            AnyRecording::Scale(recording) => recording.steps.len(),
            AnyRecording::Jobs(recording) => recording.steps.len(),
        }
    }
}

fn in_field(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!(", {path}") }
}

type Whole<R> = Chain<Cursor<Vec<u8>>, R>;

enum Input<R> {
    Plain(BufReader<Whole<R>>),
    Gzip(Box<BufReader<MultiGzDecoder<BufReader<Whole<R>>>>>),
}

/// Reads Recordings from plain or gzip-compressed lines; which one it is, the first bytes say.
pub struct RecordingReader<R> {
    input: Input<R>,
    line: u64,
    max_line_bytes: usize,
    failed: bool,
}

/// One line as it was read, for whoever wants to parse lines elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Where it stood, from 1.
    pub number: u64,
    /// What it holds.
    pub bytes: Vec<u8>,
}

impl<R: Read> RecordingReader<R> {
    /// Finds out from the first bytes of the input whether it is compressed.
    pub fn new(mut input: R) -> io::Result<Self> {
        let mut start = Vec::with_capacity(GZIP_MAGIC.len());
        (&mut input).take(GZIP_MAGIC.len() as u64).read_to_end(&mut start)?;
        let compressed = start == GZIP_MAGIC;
        let whole = BufReader::with_capacity(BUFFER_BYTES, Cursor::new(start).chain(input));
        let input = if compressed {
            let plain = MultiGzDecoder::new(whole);
            Input::Gzip(Box::new(BufReader::with_capacity(BUFFER_BYTES, plain)))
        } else {
            Input::Plain(whole)
        };
        Ok(RecordingReader { input, line: 0, max_line_bytes: MAX_LINE_BYTES, failed: false })
    }

    /// Sets the longest line that is read, in bytes.
    #[must_use]
    pub fn with_max_line_bytes(mut self, limit: usize) -> Self {
        self.max_line_bytes = limit;
        self
    }

    /// The next line that is not blank.
    pub fn next_line(&mut self) -> Result<Option<Line>, RecordingError> {
        let mut bytes = Vec::new();
        while self.read_line(&mut bytes)? {
            if !bytes.trim_ascii().is_empty() {
                return Ok(Some(Line { number: self.line, bytes }));
            }
            bytes.clear();
        }
        Ok(None)
    }

    fn read_line(&mut self, bytes: &mut Vec<u8>) -> Result<bool, RecordingError> {
        if self.failed {
            return Ok(false);
        }
        self.line += 1;
        let line = self.line;
        let limit = self.max_line_bytes;
        // One byte more shows that the line goes on, another holds its end.
        let most = limit as u64 + 2;
        let read = match &mut self.input {
            Input::Plain(input) => input.take(most).read_until(b'\n', bytes),
            Input::Gzip(input) => input.take(most).read_until(b'\n', bytes),
        };
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        let result = match read {
            Err(source) => Err(RecordingError::Input { line, source }),
            Ok(_) if bytes.len() > limit => Err(RecordingError::TooLong { line, limit }),
            Ok(length) => Ok(length > 0),
        };
        // After a failure it is not known where the next line starts.
        self.failed = result.is_err();
        result
    }
}

/// The Recordings of autoscalers that give their targets sizes; those of ScaledJobs are passed over.
impl<R: Read> Iterator for RecordingReader<R> {
    type Item = Result<Recording, RecordingError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.next_line().transpose()? {
                Ok(line) if line.is_of_jobs() => {}
                line => return Some(line.and_then(|line| line.parse())),
            }
        }
    }
}

impl Line {
    /// The Recording on this line, of either form.
    pub fn parse_any(&self) -> Result<AnyRecording, RecordingError> {
        if self.is_of_jobs() {
            let recording: JobsRecording = self.read()?;
            self.expect_kind(&recording.api_version, &recording.kind)?;
            return Ok(AnyRecording::Jobs(Box::new(recording)));
        }
        self.parse().map(|recording| AnyRecording::Scale(Box::new(recording)))
    }

    /// The Recording on this line, of an autoscaler that gives its target a size.
    pub fn parse(&self) -> Result<Recording, RecordingError> {
        let recording: Recording = self.read()?;
        self.expect_kind(&recording.api_version, &recording.kind)?;
        Ok(recording)
    }

    /// Whether it is the Recording of a ScaledJob. Nearly no line has that word in it, so that nearly none is read twice.
    fn is_of_jobs(&self) -> bool {
        #[derive(Deserialize)]
        struct Head {
            autoscaler: Autoscaler,
        }
        #[derive(Deserialize)]
        struct Autoscaler {
            kind: String,
        }
        let is_of_jobs = |head: Head| head.autoscaler.kind == SCALED_JOB;
        std::str::from_utf8(&self.bytes).is_ok_and(|text| {
            text.contains(SCALED_JOB) && serde_json::from_str(text).is_ok_and(is_of_jobs)
        })
    }

    fn read<T: DeserializeOwned>(&self) -> Result<T, RecordingError> {
        // Text that was checked as a whole is faster to read than bytes.
        let result = match std::str::from_utf8(&self.bytes) {
            Ok(text) => serde_json::from_str(text),
            Err(_) => serde_json::from_slice(&self.bytes),
        };
        result.map_err(|error| self.explain::<T>(&error))
    }

    fn expect_kind(&self, api_version: &str, kind: &str) -> Result<(), RecordingError> {
        if api_version == API_VERSION && kind == KIND {
            return Ok(());
        }
        let found = format!("{api_version} {kind}");
        Err(RecordingError::Kind { line: self.number, found })
    }

    /// Parses again, slowly, to find the field that is wrong.
    fn explain<T: DeserializeOwned>(&self, error: &serde_json::Error) -> RecordingError {
        let line = self.number;
        if let Some(found) = self.other_kind() {
            return RecordingError::Kind { line, found };
        }
        let mut json = serde_json::Deserializer::from_slice(&self.bytes);
        let result: Result<T, _> = serde_path_to_error::deserialize(&mut json);
        // If the object itself is fine, something stands behind it.
        let field = result.map_or_else(|error| error.path().to_string(), |_| String::new());
        let field = field.trim_end_matches('?').trim_end_matches('.').into();
        let text = error.to_string();
        let message = text.rfind(" at line ").map_or(text.as_str(), |end| &text[..end]).into();
        RecordingError::Json { line, column: error.column(), field, message }
    }

    /// An object of another kind may well lack a Recording's fields; its kind says more.
    fn other_kind(&self) -> Option<String> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct TypeMeta {
            api_version: String,
            kind: String,
        }
        let found: TypeMeta = serde_json::from_slice(&self.bytes).ok()?;
        let other = found.api_version != API_VERSION || found.kind != KIND;
        other.then(|| format!("{} {}", found.api_version, found.kind))
    }
}
