//! Recorded load: CSV with the columns `seconds,value`, plain or gzipped, read within fixed bounds.

use flate2::read::MultiGzDecoder;
use podscale_core::Span;
use std::io::Read;
use thiserror::Error;

/// The most text a trace may have once unpacked, in bytes.
pub const MAX_BYTES: u64 = 64 << 20;
/// The most points a trace may have.
pub const MAX_POINTS: usize = 2_000_000;
/// The latest time a trace may reach, in seconds (about 31 years).
pub const MAX_SECONDS: f64 = 1e9;
/// The highest value a point may have.
pub const MAX_VALUE: f64 = 1e12;

const HEADER: [&str; 2] = ["seconds", "value"];
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const SHOWN_CHARACTERS: usize = 40;

/// The traces that come with the program; `traces/README.md` has their origins and licences.
pub const BUILT_IN: [(&str, &[u8]); 3] = [
    ("azure_llm_conv_1s", include_bytes!("../traces/azure_llm_conv_1s.csv.gz")),
    ("mooncake_conv_3s", include_bytes!("../traces/mooncake_conv_3s.csv.gz")),
    ("nab_nyc_taxi_1800s", include_bytes!("../traces/nab_nyc_taxi_1800s.csv.gz")),
];

/// The trace of this name that comes with the program, if there is one.
#[must_use]
pub fn built_in(name: &str) -> Option<Result<Trace, TraceError>> {
    let (_, bytes) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
    Some(Trace::read(*bytes))
}

/// Why a trace could not be read.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The bytes could not be read or unpacked.
    #[error("cannot read the trace: {0}")]
    Read(#[from] std::io::Error),
    /// The text is larger than [`MAX_BYTES`].
    #[error("the trace has more than {MAX_BYTES} bytes of text")]
    TooLarge,
    /// There is no point in it.
    #[error("the trace has no points")]
    Empty,
    /// A line is wrong as a whole.
    #[error("line {line}: {problem}")]
    Line {
        /// The line's number, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// One cell is wrong.
    #[error("line {line}, column {column} ({name}): {problem}")]
    Cell {
        /// The line's number, from 1.
        line: usize,
        /// The column's number, from 1.
        column: usize,
        /// The column's name.
        name: &'static str,
        /// What is wrong with the cell.
        problem: String,
    },
}

/// The load from one time on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// When it begins, counted from the trace's start.
    pub at: Span,
    /// How much load there is, in the trace's own unit.
    pub value: f64,
}

/// A recorded load: points in order of time, at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    points: Vec<Point>,
    length: Span,
    peak: f64,
}

impl Trace {
    /// Reads a trace, gzipped or plain.
    ///
    /// # Errors
    /// Says in which line and column what is wrong, or that the trace is out of bounds.
    pub fn read(mut source: impl Read) -> Result<Trace, TraceError> {
        let mut start = Vec::with_capacity(GZIP_MAGIC.len());
        source.by_ref().take(GZIP_MAGIC.len() as u64).read_to_end(&mut start)?;
        let whole = start.as_slice().chain(source);
        let text = if start == GZIP_MAGIC {
            bounded_text(MultiGzDecoder::new(whole))?
        } else {
            bounded_text(whole)?
        };
        Trace::parse(&text)
    }

    /// Reads a trace from its text.
    ///
    /// # Errors
    /// As [`Trace::read`].
    pub fn parse(text: &str) -> Result<Trace, TraceError> {
        let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim_end()));
        match lines.next() {
            Some((_, header)) if is_header(header) => {}
            Some((line, found)) => {
                let problem =
                    format!("expected the header \"seconds,value\", found {}", shown(found));
                return Err(TraceError::Line { line, problem });
            }
            None => return Err(TraceError::Empty),
        }
        let mut points: Vec<Point> = Vec::new();
        for (line, row) in lines.filter(|(_, row)| !row.is_empty()) {
            if points.len() == MAX_POINTS {
                let problem = format!("more than {MAX_POINTS} points");
                return Err(TraceError::Line { line, problem });
            }
            points.push(parse_row(line, row, points.last())?);
        }
        Trace::new(points).ok_or(TraceError::Empty)
    }

    /// A trace of points that are in order of time, or nothing if there are none.
    #[must_use]
    pub fn new(points: Vec<Point>) -> Option<Trace> {
        let last = points.last()?;
        let step = match points.as_slice() {
            [.., before, last] => last.at.0.saturating_sub(before.at.0),
            _ => Span::seconds(1).0,
        };
        let length = Span(last.at.0.saturating_add(step));
        let peak = points.iter().map(|point| point.value).fold(0.0, f64::max);
        Some(Trace { points, length, peak })
    }

    /// The points, in order of time; never empty.
    #[must_use]
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// How long it is, the last point's step included.
    #[must_use]
    pub fn length(&self) -> Span {
        self.length
    }

    /// Its highest value.
    #[must_use]
    pub fn peak(&self) -> f64 {
        self.peak
    }

    /// The value of the step that `at` falls in; before the first point and after the last the
    /// nearest point's value.
    #[must_use]
    pub fn value_at(&self, at: Span) -> f64 {
        self.points[self.index_at(at)].value
    }

    /// The value on the straight line between the two points around `at`.
    #[must_use]
    pub fn interpolated_at(&self, at: Span) -> f64 {
        let index = self.index_at(at);
        let here = self.points[index];
        let Some(next) = self.points.get(index + 1) else {
            return here.value;
        };
        let step = next.at.0.saturating_sub(here.at.0).max(1) as f64;
        let passed = at.0.saturating_sub(here.at.0) as f64;
        here.value + (next.value - here.value) * (passed / step).clamp(0.0, 1.0)
    }

    /// When the next point after `at` begins, if there is one.
    #[must_use]
    pub fn next_after(&self, at: Span) -> Option<Span> {
        let next = self.points.partition_point(|point| point.at <= at);
        self.points.get(next).map(|point| point.at)
    }

    fn index_at(&self, at: Span) -> usize {
        self.points.partition_point(|point| point.at <= at).saturating_sub(1)
    }
}

fn bounded_text(source: impl Read) -> Result<String, TraceError> {
    let mut bytes = Vec::new();
    let read = source.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if read as u64 > MAX_BYTES {
        return Err(TraceError::TooLarge);
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..valid].iter().filter(|byte| **byte == b'\n').count() + 1;
        TraceError::Line { line, problem: "not UTF-8 text".to_owned() }
    })
}

fn is_header(line: &str) -> bool {
    let line = line.strip_prefix('\u{feff}').unwrap_or(line);
    line.split(',').map(str::trim).eq(HEADER)
}

fn parse_row(line: usize, row: &str, before: Option<&Point>) -> Result<Point, TraceError> {
    let mut cells = row.split(',');
    let (Some(seconds), Some(value), None) = (cells.next(), cells.next(), cells.next()) else {
        let problem = format!("expected 2 columns, found {}", row.split(',').count());
        return Err(TraceError::Line { line, problem });
    };
    let seconds = parse_cell(line, 1, seconds, MAX_SECONDS)?;
    let value = parse_cell(line, 2, value, MAX_VALUE)?;
    // In range: at most 1e9 seconds, so 1e15 microseconds.
    let at = Span((seconds * 1e6).round() as i64);
    if before.is_some_and(|before| before.at >= at) {
        let problem = format!("{seconds} is not later than the line before");
        return Err(cell_error(line, 1, problem));
    }
    Ok(Point { at, value })
}

fn parse_cell(line: usize, column: usize, cell: &str, most: f64) -> Result<f64, TraceError> {
    let cell = cell.trim();
    let fail = |problem: String| Err(cell_error(line, column, problem));
    match cell.parse::<f64>() {
        _ if cell.is_empty() => fail("empty".to_owned()),
        Err(_) => fail(format!("{} is not a number", shown(cell))),
        Ok(number) if !number.is_finite() => fail(format!("{} is not finite", shown(cell))),
        Ok(number) if number < 0.0 => fail(format!("{number} is negative")),
        Ok(number) if number > most => fail(format!("{number} is more than {most}")),
        Ok(number) => Ok(number),
    }
}

fn cell_error(line: usize, column: usize, problem: String) -> TraceError {
    TraceError::Cell { line, column, name: HEADER[(column - 1).min(1)], problem }
}

fn shown(text: &str) -> String {
    let mut characters = text.chars();
    let start: String = characters.by_ref().take(SHOWN_CHARACTERS).collect();
    if characters.next().is_none() { format!("{start:?}") } else { format!("{start:?}…") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    #[test]
    fn plain_and_gzipped_text_read_alike() {
        let text = "seconds,value\n0,1.5\n60,3\r\n\n120,0\n";
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(text.as_bytes()).unwrap();
        let packed = packed.finish().unwrap();
        let plain = Trace::read(text.as_bytes()).unwrap();
        assert_eq!(plain, Trace::read(packed.as_slice()).unwrap());
        assert_eq!(plain.points().len(), 3);
        assert_eq!(plain.length(), Span::seconds(180));
        assert_eq!(plain.peak(), 3.0);
    }

    #[test]
    fn values_hold_for_their_step_or_are_interpolated() {
        let trace = Trace::parse("seconds,value\n10,1\n20,3\n").unwrap();
        for (second, held, line) in
            [(0, 1.0, 1.0), (10, 1.0, 1.0), (15, 1.0, 2.0), (20, 3.0, 3.0), (99, 3.0, 3.0)]
        {
            assert_eq!(trace.value_at(Span::seconds(second)), held, "held at {second}");
            assert_eq!(trace.interpolated_at(Span::seconds(second)), line, "line at {second}");
        }
    }

    #[test]
    fn errors_name_line_and_column() {
        for (text, expected) in [
            ("", "the trace has no points"),
            ("seconds,value\n", "the trace has no points"),
            (
                "time,rps\n0,1\n",
                "line 1: expected the header \"seconds,value\", found \"time,rps\"",
            ),
            ("seconds,value\n0\n", "line 2: expected 2 columns, found 1"),
            ("seconds,value\n0,1\n1,2,3\n", "line 3: expected 2 columns, found 3"),
            ("seconds,value\n0,x\n", "line 2, column 2 (value): \"x\" is not a number"),
            ("seconds,value\n0,\n", "line 2, column 2 (value): empty"),
            ("seconds,value\n0,inf\n", "line 2, column 2 (value): \"inf\" is not finite"),
            ("seconds,value\n0,-1\n", "line 2, column 2 (value): -1 is negative"),
            (
                "seconds,value\n2e9,1\n",
                "line 2, column 1 (seconds): 2000000000 is more than 1000000000",
            ),
            (
                "seconds,value\n5,1\n5,1\n",
                "line 3, column 1 (seconds): 5 is not later than the line before",
            ),
        ] {
            assert_eq!(Trace::parse(text).unwrap_err().to_string(), expected, "{text:?}");
        }
        let error = Trace::read(b"seconds,value\n0,\xff\n".as_slice()).unwrap_err();
        assert_eq!(error.to_string(), "line 2: not UTF-8 text");
        let broken = Trace::read([0x1f, 0x8b, 0, 0].as_slice()).unwrap_err();
        assert!(broken.to_string().starts_with("cannot read the trace: "), "{broken}");
    }

    #[test]
    fn a_gzip_bomb_is_refused() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        let zeros = vec![b'0'; 1 << 20];
        for _ in 0..=(MAX_BYTES >> 20) {
            packed.write_all(&zeros).unwrap();
        }
        let error = Trace::read(packed.finish().unwrap().as_slice()).unwrap_err();
        assert!(matches!(error, TraceError::TooLarge), "{error}");
    }
}
