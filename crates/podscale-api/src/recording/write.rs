//! Writing Recordings, one line each.

use std::io::{self, BufWriter, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use serde::Serialize;

use super::{AnyRecording, JobsRecording, Recording};

/// What is written as one line.
pub trait Recorded: Serialize {}

impl Recorded for Recording {}
impl Recorded for JobsRecording {}
impl Recorded for AnyRecording {}

enum Output<W: Write> {
    Plain(BufWriter<W>),
    Gzip(GzEncoder<BufWriter<W>>),
}

/// Writes Recordings as lines of JSON, plain or compressed.
pub struct RecordingWriter<W: Write>(Output<W>);

impl<W: Write> RecordingWriter<W> {
    /// Writes plain lines.
    pub fn plain(output: W) -> Self {
        RecordingWriter(Output::Plain(BufWriter::new(output)))
    }

    /// Writes lines compressed with gzip.
    pub fn gzip(output: W) -> Self {
        let encoder = GzEncoder::new(BufWriter::new(output), Compression::default());
        RecordingWriter(Output::Gzip(encoder))
    }

    /// Writes one Recording.
    pub fn write(&mut self, recording: &impl Recorded) -> io::Result<()> {
        match &mut self.0 {
            Output::Plain(output) => write_line(output, recording),
            Output::Gzip(output) => write_line(output, recording),
        }
    }

    /// Writes what is still held back and gives the output back; what is compressed is only whole
    /// after this.
    pub fn finish(self) -> io::Result<W> {
        let buffered = match self.0 {
            Output::Plain(output) => output,
            Output::Gzip(output) => output.finish()?,
        };
        buffered.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

fn write_line(output: &mut impl Write, recording: &impl Recorded) -> io::Result<()> {
    serde_json::to_writer(&mut *output, recording)?;
    output.write_all(b"\n")
}
