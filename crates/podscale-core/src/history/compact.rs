//! The history as a few bytes, to be kept across restarts.
//!
//! One byte of version, then three lists. A list is its length and its entries; an
//! entry is the time since the one before it and its number, both as zigzag varints. Twenty
//! recommendations fifteen seconds apart take about a hundred bytes.
//!
//! A history with a memory has the next version: after the lists come two times that may be absent
//! (a byte of zero or one, then the time) and the last answers, each with its time, the replicas and
//! the metric it is of.
//!
//! One that remembers demands or failures, or has a forecaster, has version 4: a byte says whether there is a
//! memory; behind it come the last demand, what was asked for in the window, the burst that is on, and pairs of a
//! trigger that failed and how often; at last the forecaster. Each of these may be absent.
//!
//! Version 3 was the same at first, but what follows the memory had several forms that cannot be told apart. So of
//! those only what comes before is read, and the demand is learned anew.
//!
//! One with room that is learned has version 5: version 4, and before the forecaster the room with its time.

use super::{
    Asked, Burst, Failures, History, LastAnswer, MAX_ASKED, MAX_ENTRIES, MAX_LAST_ANSWERS, Memory,
    Recommendation, Room, ScaleEvent,
};
pub use crate::compact::CompactError;
use crate::compact::{NEWEST_VERSION, Reader, write_signed, write_time, write_varint};
use crate::model::Milli;
use crate::predict::{Demand, Forecaster};
use crate::time::{Span, Time};

const VERSION: u8 = 1;
const VERSION_WITH_MEMORY: u8 = 2;
const VERSION_WITH_UNKNOWN_END: u8 = 3;
const VERSION_WITH_DEMANDS: u8 = 4;
const VERSION_WITH_ROOM: u8 = NEWEST_VERSION;

impl History {
    /// The history as a few bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let demands = |memory: &Memory| {
            let Memory { demand, asked, burst, failures, .. } = memory;
            demand.is_some() || !asked.is_empty() || burst.is_some() || !failures.is_empty()
        };
        let memory = self.memory.as_deref();
        let room = memory.and_then(|memory| memory.room);
        let version = if room.is_some() {
            VERSION_WITH_ROOM
        } else if self.forecaster.is_some() || memory.is_some_and(demands) {
            VERSION_WITH_DEMANDS
        } else if memory.is_some() {
            VERSION_WITH_MEMORY
        } else {
            VERSION
        };
        let mut out = vec![version];
        let recommendations = self.recommendations.iter().map(|r| (r.at, i64::from(r.replicas)));
        write_list(&mut out, recommendations);
        for events in [&self.ups, &self.downs] {
            // The outdated mark travels in the lowest bit.
            let number = |e: &ScaleEvent| i64::from(e.change) * 2 + i64::from(e.outdated);
            write_list(&mut out, events.iter().map(|e| (e.at, number(e))));
        }
        if version >= VERSION_WITH_DEMANDS {
            out.push(u8::from(memory.is_some()));
        }
        if let Some(memory) = memory {
            write_memory(&mut out, memory);
        }
        if version >= VERSION_WITH_DEMANDS {
            if let Some(memory) = memory {
                write_demands(&mut out, memory);
                write_failures(&mut out, &memory.failures);
            }
            if let Some(Room { part, at }) = room {
                write_signed(&mut out, at.0);
                write_signed(&mut out, part);
            }
            out.push(u8::from(self.forecaster.is_some()));
            if let Some(forecaster) = &self.forecaster {
                forecaster.write(&mut out);
            }
        }
        out
    }

    /// The history that [`History::to_bytes`] wrote.
    ///
    /// # Errors
    /// The bytes were not written by it, or are cut off.
    pub fn from_bytes(bytes: &[u8]) -> Result<History, CompactError> {
        let mut reader = Reader::new(bytes);
        let version = reader.byte()?;
        if !(VERSION..=NEWEST_VERSION).contains(&version) {
            return Err(CompactError::Version(version));
        }
        let recommendations = read_list(&mut reader, |at, number, range| {
            Ok(Recommendation { at, replicas: i32::try_from(number).map_err(|_| range)? })
        })?;
        let event = |at, number: i64, range| {
            let change = i32::try_from(number >> 1).map_err(|_| range)?;
            Ok(ScaleEvent { at, change, outdated: number & 1 == 1 })
        };
        let (ups, downs) = (read_list(&mut reader, event)?, read_list(&mut reader, event)?);
        let demands = version >= VERSION_WITH_DEMANDS;
        let remembers = match version {
            VERSION => false,
            VERSION_WITH_MEMORY => true,
            _ => reader.flag()?,
        };
        let mut history = History { recommendations, ups, downs, memory: None, forecaster: None };
        if remembers {
            let mut memory = read_memory(&mut reader)?;
            if demands {
                read_demands(&mut reader, &mut memory)?;
                memory.failures = read_failures(&mut reader)?;
            }
            if version == VERSION_WITH_ROOM {
                memory.room = Some(read_room(&mut reader)?);
            }
            history.memory = Some(Box::new(memory));
        }
        if version == VERSION_WITH_UNKNOWN_END {
            return Ok(history);
        }
        if demands && reader.flag()? {
            history.forecaster = Some(Box::new(Forecaster::read(&mut reader)?));
        }
        if reader.left() > 0 {
            return Err(CompactError::Trailing(reader.at()));
        }
        Ok(history)
    }
}

fn write_list(out: &mut Vec<u8>, entries: impl ExactSizeIterator<Item = (Time, i64)>) {
    write_varint(out, entries.len() as u64);
    let mut before = 0i64;
    for (at, number) in entries {
        write_signed(out, at.0.wrapping_sub(before));
        write_signed(out, number);
        before = at.0;
    }
}

fn write_memory(out: &mut Vec<u8>, memory: &Memory) {
    for time in [memory.last_active, memory.metrics_gone_since] {
        write_time(out, time);
    }
    write_list(out, memory.last_answers.iter().map(|a| (a.at, i64::from(a.replicas))));
    for answer in &memory.last_answers {
        write_varint(out, u64::from(answer.metric));
    }
}

fn write_demands(out: &mut Vec<u8>, memory: &Memory) {
    write_time(out, memory.demand.map(|demand| demand.at));
    if let Some(Demand { replicas, horizon, .. }) = memory.demand {
        write_signed(out, replicas.0);
        write_signed(out, horizon.0);
    }
    write_list(out, memory.asked.iter().map(|asked| (asked.at, asked.replicas.0)));
    write_time(out, memory.burst.map(|burst| burst.last));
    if let Some(Burst { replicas, .. }) = memory.burst {
        write_signed(out, i64::from(replicas));
    }
}

fn write_failures(out: &mut Vec<u8>, failures: &[Failures]) {
    write_varint(out, failures.len() as u64);
    for Failures { trigger, count } in failures {
        write_varint(out, u64::from(*trigger));
        write_varint(out, u64::from(*count));
    }
}

fn read_failures(reader: &mut Reader<'_>) -> Result<Vec<Failures>, CompactError> {
    let start = reader.at();
    let count: usize = reader.small()?;
    if count > MAX_LAST_ANSWERS {
        return Err(CompactError::Range(start));
    }
    (0..count).map(|_| Ok(Failures { trigger: reader.small()?, count: reader.small()? })).collect()
}

fn read_memory(reader: &mut Reader<'_>) -> Result<Memory, CompactError> {
    let (last_active, metrics_gone_since) = (reader.time()?, reader.time()?);
    let start = reader.at();
    let mut last_answers = read_list(reader, |at, number, range| {
        let replicas = i32::try_from(number).map_err(|_| range)?;
        Ok(LastAnswer { metric: 0, replicas, at })
    })?;
    if last_answers.len() > MAX_LAST_ANSWERS {
        return Err(CompactError::Range(start));
    }
    for answer in &mut last_answers {
        answer.metric = reader.small()?;
    }
    Ok(Memory { last_active, metrics_gone_since, last_answers, ..Memory::default() })
}

/// What is remembered of demands.
fn read_demands(reader: &mut Reader<'_>, memory: &mut Memory) -> Result<(), CompactError> {
    if let Some(at) = reader.time()? {
        let (replicas, horizon) = (Milli(reader.signed()?), Span(reader.signed()?));
        memory.demand = Some(Demand { replicas, at, horizon });
    }
    let start = reader.at();
    memory.asked = read_list(reader, |at, number, _| Ok(Asked { replicas: Milli(number), at }))?;
    if memory.asked.len() > MAX_ASKED {
        return Err(CompactError::Range(start));
    }
    if let Some(last) = reader.time()? {
        let start = reader.at();
        let replicas = reader.signed()?;
        let replicas = i32::try_from(replicas).map_err(|_| CompactError::Range(start))?;
        memory.burst = Some(Burst { last, replicas });
    }
    Ok(())
}

/// What was learned of the room.
fn read_room(reader: &mut Reader<'_>) -> Result<Room, CompactError> {
    let at = Time(reader.signed()?);
    let start = reader.at();
    let part = reader.signed()?;
    if part < 0 { Err(CompactError::Range(start)) } else { Ok(Room { part, at }) }
}

fn read_list<T>(
    reader: &mut Reader<'_>,
    make: impl Fn(Time, i64, CompactError) -> Result<T, CompactError>,
) -> Result<Vec<T>, CompactError> {
    let start = reader.at();
    let count = reader.varint()?;
    let count = usize::try_from(count).ok().filter(|n| *n <= MAX_ENTRIES);
    let count = count.ok_or(CompactError::Range(start))?;
    let mut list = Vec::with_capacity(count.min(reader.left()));
    let mut before = 0i64;
    for _ in 0..count {
        let start = reader.at();
        before = before.wrapping_add(reader.signed()?);
        let number = reader.signed()?;
        list.push(make(Time(before), number, CompactError::Range(start))?);
    }
    Ok(list)
}
