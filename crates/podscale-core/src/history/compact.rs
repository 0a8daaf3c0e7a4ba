//! The history as a few bytes, to be kept across restarts.
//!
//! One byte of version, then three lists. A list is its length and its entries; an
//! entry is the time since the one before it and its number, both as zigzag varints. Twenty
//! recommendations fifteen seconds apart take about a hundred bytes.
//!
//! A history with a memory has the next version: after the lists come two times that may be absent
//! (a byte of zero or one, then the time) and the last answers, each with its time, the replicas and
//! the metric it is of. If triggers have failed, the version is the one after that, and pairs of a
//! trigger and a count follow.

use super::{
    Failures, History, LastAnswer, MAX_ENTRIES, MAX_LAST_ANSWERS, Memory, Recommendation,
    ScaleEvent,
};
use crate::time::Time;

const VERSION: u8 = 1;
const VERSION_WITH_MEMORY: u8 = 2;
const VERSION_WITH_FAILURES: u8 = 3;

/// Why bytes are not a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompactError {
    /// Written by a version that this one does not know.
    #[error("history has version {0}, only versions up to {VERSION_WITH_FAILURES} are known")]
    Version(u8),
    /// The bytes end too early.
    #[error("history ends in the middle of an entry")]
    Truncated,
    /// A number or a length is out of range.
    #[error("history has a number that is out of range at byte {0}")]
    Range(usize),
    /// Something follows after the last list.
    #[error("history goes on after its end at byte {0}")]
    Trailing(usize),
}

impl History {
    /// The history as a few bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![match &self.memory {
            None => VERSION,
            Some(memory) if memory.failures.is_empty() => VERSION_WITH_MEMORY,
            Some(_) => VERSION_WITH_FAILURES,
        }];
        let recommendations = self.recommendations.iter().map(|r| (r.at, i64::from(r.replicas)));
        write_list(&mut out, recommendations);
        for events in [&self.ups, &self.downs] {
            // The outdated mark travels in the lowest bit.
            let number = |e: &ScaleEvent| i64::from(e.change) * 2 + i64::from(e.outdated);
            write_list(&mut out, events.iter().map(|e| (e.at, number(e))));
        }
        if let Some(memory) = &self.memory {
            write_memory(&mut out, memory);
        }
        out
    }

    /// The history that [`History::to_bytes`] wrote.
    ///
    /// # Errors
    /// The bytes were not written by it, or are cut off.
    pub fn from_bytes(bytes: &[u8]) -> Result<History, CompactError> {
        let mut reader = Reader { bytes, at: 0 };
        let version = reader.byte()?;
        if !(VERSION..=VERSION_WITH_FAILURES).contains(&version) {
            return Err(CompactError::Version(version));
        }
        let recommendations = reader.list(|at, number, range| {
            Ok(Recommendation { at, replicas: i32::try_from(number).map_err(|_| range)? })
        })?;
        let event = |at, number: i64, range| {
            let change = i32::try_from(number >> 1).map_err(|_| range)?;
            Ok(ScaleEvent { at, change, outdated: number & 1 == 1 })
        };
        let (ups, downs) = (reader.list(event)?, reader.list(event)?);
        let memory = match version {
            VERSION => None,
            version => Some(Box::new(reader.memory(version)?)),
        };
        if reader.at != bytes.len() {
            return Err(CompactError::Trailing(reader.at));
        }
        Ok(History { recommendations, ups, downs, memory })
    }
}

fn write_list(out: &mut Vec<u8>, entries: impl ExactSizeIterator<Item = (Time, i64)>) {
    write_varint(out, entries.len() as u64);
    let mut before = 0i64;
    for (at, number) in entries {
        write_varint(out, zigzag(at.0.wrapping_sub(before)));
        write_varint(out, zigzag(number));
        before = at.0;
    }
}

fn write_memory(out: &mut Vec<u8>, memory: &Memory) {
    for time in [memory.last_active, memory.metrics_gone_since] {
        out.push(u8::from(time.is_some()));
        if let Some(time) = time {
            write_varint(out, zigzag(time.0));
        }
    }
    write_list(out, memory.last_answers.iter().map(|a| (a.at, i64::from(a.replicas))));
    for answer in &memory.last_answers {
        write_varint(out, u64::from(answer.metric));
    }
    if memory.failures.is_empty() {
        return;
    }
    write_varint(out, memory.failures.len() as u64);
    for Failures { trigger, count } in &memory.failures {
        write_varint(out, u64::from(*trigger));
        write_varint(out, u64::from(*count));
    }
}

fn write_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

const fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

const fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Result<u8, CompactError> {
        let byte = *self.bytes.get(self.at).ok_or(CompactError::Truncated)?;
        self.at += 1;
        Ok(byte)
    }

    fn varint(&mut self) -> Result<u64, CompactError> {
        let start = self.at;
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if (bits << shift) >> shift != bits {
                return Err(CompactError::Range(start));
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(CompactError::Range(start))
    }

    fn time(&mut self) -> Result<Option<Time>, CompactError> {
        let start = self.at;
        match self.byte()? {
            0 => Ok(None),
            1 => Ok(Some(Time(unzigzag(self.varint()?)))),
            _ => Err(CompactError::Range(start)),
        }
    }

    fn memory(&mut self, version: u8) -> Result<Memory, CompactError> {
        let (last_active, metrics_gone_since) = (self.time()?, self.time()?);
        let start = self.at;
        let mut last_answers = self.list(|at, number, range| {
            let replicas = i32::try_from(number).map_err(|_| range)?;
            Ok(LastAnswer { metric: 0, replicas, at })
        })?;
        if last_answers.len() > MAX_LAST_ANSWERS {
            return Err(CompactError::Range(start));
        }
        for answer in &mut last_answers {
            answer.metric = self.small()?;
        }
        let failures = match version {
            VERSION_WITH_FAILURES => self.failures()?,
            _ => Vec::new(),
        };
        Ok(Memory { last_active, metrics_gone_since, last_answers, failures })
    }

    fn failures(&mut self) -> Result<Vec<Failures>, CompactError> {
        let start = self.at;
        let count = self.small()?;
        // None of them would have been written as an earlier version.
        if !(1..=MAX_LAST_ANSWERS as u32).contains(&count) {
            return Err(CompactError::Range(start));
        }
        (0..count).map(|_| Ok(Failures { trigger: self.small()?, count: self.small()? })).collect()
    }

    fn small(&mut self) -> Result<u32, CompactError> {
        let start = self.at;
        u32::try_from(self.varint()?).map_err(|_| CompactError::Range(start))
    }

    fn list<T>(
        &mut self,
        make: impl Fn(Time, i64, CompactError) -> Result<T, CompactError>,
    ) -> Result<Vec<T>, CompactError> {
        let start = self.at;
        let count = self.varint()?;
        let count = usize::try_from(count).ok().filter(|n| *n <= MAX_ENTRIES);
        let count = count.ok_or(CompactError::Range(start))?;
        let mut list = Vec::with_capacity(count.min(self.bytes.len() - self.at));
        let mut before = 0i64;
        for _ in 0..count {
            let start = self.at;
            before = before.wrapping_add(unzigzag(self.varint()?));
            let number = unzigzag(self.varint()?);
            list.push(make(Time(before), number, CompactError::Range(start))?);
        }
        Ok(list)
    }
}
