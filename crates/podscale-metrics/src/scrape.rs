//! What one scrape of one node found, before it is compared with what was known.

use crate::exposition::{LineError, Sample, samples};
use std::borrow::Cow;
use std::collections::HashMap;
use thiserror::Error;

mod plain;
#[cfg(test)]
mod tests;

/// The most containers that one node may report; further ones are skipped.
const MAX_CONTAINERS: usize = 50_000;
/// The longest name of a namespace, pod or container.
const MAX_NAME_BYTES: usize = 253;

/// One reading of a container or node. What is not a usable number is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Reading {
    /// When it was taken, in milliseconds since 1970, if the node says so.
    pub(crate) time_ms: Option<i64>,
    /// When the container was started; 0 if unknown.
    pub(crate) start_seconds: f64,
    /// CPU time since the start, or within the window if there is one.
    pub(crate) cpu_seconds: Option<f64>,
    pub(crate) memory_bytes: Option<f64>,
    /// How long was measured, where the node computes the mean itself.
    pub(crate) window_ms: Option<i64>,
}

/// One container of a scrape; its names are a piece of the scrape's text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Row {
    names: u32,
    namespace: u8,
    pod: u8,
    container: u8,
    pub(crate) reading: Reading,
}

/// What one scrape of one node found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scrape {
    pub(crate) node: Reading,
    /// Namespace, pod and container of one row after the other.
    names: String,
    /// By namespace, pod and container.
    rows: Vec<Row>,
    malformed: Option<Malformed>,
    /// Whether anything in it is what kubelets say.
    recognized: bool,
    failed: bool,
}

/// Parts of a scrape that cannot be read. Each costs its own sample only.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{lines} malformed lines were skipped, the first is {first}")]
pub struct Malformed {
    /// How many there are.
    pub lines: usize,
    /// The first of them.
    pub first: LineError,
}

impl Scrape {
    /// Reads a kubelet's `/metrics/resource`. Lines that are malformed are skipped and counted.
    #[must_use]
    pub fn read(text: &str) -> Scrape {
        let mut reading = Reader::default();
        for sample in samples(text) {
            match sample {
                Ok(sample) => reading.add(&sample),
                Err(error) => reading.scrape.skip(error),
            }
        }
        reading.scrape.finish()
    }

    /// What was skipped, if anything was.
    #[must_use]
    pub fn malformed(&self) -> Option<&Malformed> {
        self.malformed.as_ref()
    }

    /// Whether the kubelet says that it could not measure.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.failed
    }

    /// Whether nothing in it is what kubelets say.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.recognized
    }

    /// How many containers it has readings of.
    #[must_use]
    pub fn containers(&self) -> usize {
        self.rows.len()
    }

    /// The rows, by namespace, pod and container.
    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Namespace, pod and container of a row.
    pub(crate) fn names(&self, row: &Row) -> [&str; 3] {
        let from = row.names as usize;
        let pod = from + usize::from(row.namespace);
        let container = pod + usize::from(row.pod);
        let end = container + usize::from(row.container);
        let piece = |range| self.names.get(range).unwrap_or_default();
        [piece(from..pod), piece(pod..container), piece(container..end)]
    }

    fn skip(&mut self, error: LineError) {
        match &mut self.malformed {
            Some(malformed) => malformed.lines = malformed.lines.saturating_add(1),
            None => self.malformed = Some(Malformed { lines: 1, first: error }),
        }
    }

    /// A new row; nothing if there are too many, or a name is none.
    fn push(&mut self, names: [&str; 3]) -> Option<usize> {
        let fits = |name: &str| !name.is_empty() && name.len() <= MAX_NAME_BYTES;
        if self.rows.len() >= MAX_CONTAINERS || !names.iter().all(|name| fits(name)) {
            return None;
        }
        let [namespace, pod, container] = names.map(|name| u8::try_from(name.len()).unwrap_or(0));
        let row = Row {
            names: u32::try_from(self.names.len()).ok()?,
            namespace,
            pod,
            container,
            reading: Reading::default(),
        };
        names.iter().for_each(|name| self.names.push_str(name));
        self.rows.push(row);
        Some(self.rows.len() - 1)
    }

    /// Puts the rows in order; of several with the same names the first stays.
    fn finish(mut self) -> Scrape {
        let mut rows = std::mem::take(&mut self.rows);
        rows.sort_by(|a, b| self.names(a).cmp(&self.names(b)));
        rows.dedup_by(|later, first| self.names(later) == self.names(first));
        Scrape { rows, ..self }
    }
}

/// Reads exposition text: the samples of a container are spread over families, mostly in the same
/// order in each.
#[derive(Default)]
struct Reader<'a> {
    scrape: Scrape,
    known: HashMap<[Cow<'a, str>; 3], usize>,
    /// The row that comes next if this family has the order of the one before.
    expected: usize,
}

impl<'a> Reader<'a> {
    fn add(&mut self, sample: &Sample<'a>) {
        let value = sample.value;
        match sample.name {
            "container_cpu_usage_seconds_total" => {
                if let Some(reading) = self.container(sample) {
                    (reading.cpu_seconds, reading.time_ms) = (Some(value), sample.time_ms);
                }
            }
            "container_memory_working_set_bytes" => {
                if let Some(reading) = self.container(sample) {
                    reading.memory_bytes = Some(value);
                }
            }
            "container_start_time_seconds" => {
                if let Some(reading) = self.container(sample) {
                    reading.start_seconds = value;
                }
            }
            "node_cpu_usage_seconds_total" => {
                let node = &mut self.scrape.node;
                (node.cpu_seconds, node.time_ms) = (Some(value), sample.time_ms);
            }
            "node_memory_working_set_bytes" => self.scrape.node.memory_bytes = Some(value),
            "resource_scrape_error" | "scrape_error" => self.scrape.failed |= value != 0.0,
            _ => return,
        }
        self.scrape.recognized = true;
    }

    fn container(&mut self, sample: &Sample<'a>) -> Option<&mut Reading> {
        let [mut namespace, mut pod, mut container] = [const { None }; 3];
        for (name, value) in sample.labels.iter() {
            match name {
                "namespace" => namespace = Some(value),
                "pod" => pod = Some(value),
                "container" => container = Some(value),
                _ => {}
            }
        }
        let names = [namespace?, pod?, container?];
        let place = self.place(names)?;
        self.expected = place + 1;
        self.scrape.rows.get_mut(place).map(|row| &mut row.reading)
    }

    fn place(&mut self, names: [Cow<'a, str>; 3]) -> Option<usize> {
        let expected = self.scrape.rows.get(self.expected);
        if expected.is_some_and(|row| self.scrape.names(row) == names.each_ref().map(|n| &**n)) {
            return Some(self.expected);
        }
        if let Some(place) = self.known.get(&names) {
            return Some(*place);
        }
        let place = self.scrape.push(names.each_ref().map(|name| &**name))?;
        self.known.insert(names, place);
        Some(place)
    }
}
