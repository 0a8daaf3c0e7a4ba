//! Numbers and times as few bytes, for what is kept across restarts.

use crate::time::Time;

/// The newest version of a history's compact form.
pub(crate) const NEWEST_VERSION: u8 = 5;

/// No number that is kept bit for bit gets larger.
const LARGEST_FLOAT: f64 = 1e24;

/// Why bytes are not a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompactError {
    /// Written by a version that this one does not know.
    #[error("history has version {0}, only versions up to {NEWEST_VERSION} are known")]
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

/// Appends a number, small ones in few bytes.
pub(crate) fn write_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a number with a sign, those near zero in few bytes.
pub(crate) fn write_signed(out: &mut Vec<u8>, number: i64) {
    write_varint(out, ((number << 1) ^ (number >> 63)) as u64);
}

/// Appends a time that may be absent.
pub(crate) fn write_time(out: &mut Vec<u8>, time: Option<Time>) {
    out.push(u8::from(time.is_some()));
    if let Some(Time(time)) = time {
        write_signed(out, time);
    }
}

/// Appends a number bit for bit.
pub(crate) fn write_float(out: &mut Vec<u8>, number: f64) {
    out.extend(number.to_bits().to_le_bytes());
}

/// Reads what the functions above wrote.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Begins with the first byte.
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0 }
    }

    /// Where it is.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// How many bytes are left.
    pub(crate) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(crate) fn byte(&mut self) -> Result<u8, CompactError> {
        let byte = *self.bytes.get(self.at).ok_or(CompactError::Truncated)?;
        self.at += 1;
        Ok(byte)
    }

    pub(crate) fn varint(&mut self) -> Result<u64, CompactError> {
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

    pub(crate) fn signed(&mut self) -> Result<i64, CompactError> {
        let number = self.varint()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// A number that fits a smaller type.
    pub(crate) fn small<T: TryFrom<u64>>(&mut self) -> Result<T, CompactError> {
        let start = self.at;
        T::try_from(self.varint()?).map_err(|_| CompactError::Range(start))
    }

    /// Whether something follows.
    pub(crate) fn flag(&mut self) -> Result<bool, CompactError> {
        let start = self.at;
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(CompactError::Range(start)),
        }
    }

    pub(crate) fn time(&mut self) -> Result<Option<Time>, CompactError> {
        Ok(if self.flag()? { Some(Time(self.signed()?)) } else { None })
    }

    /// A number that sums can grow to, and no larger one.
    pub(crate) fn float(&mut self) -> Result<f64, CompactError> {
        let start = self.at;
        let mut bits = [0; 8];
        for byte in &mut bits {
            *byte = self.byte()?;
        }
        let number = f64::from_le_bytes(bits);
        if number.abs() <= LARGEST_FLOAT { Ok(number) } else { Err(CompactError::Range(start)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut out = Vec::new();
        write_varint(&mut out, u64::MAX);
        for number in [0, 1, -1, i64::MAX, i64::MIN] {
            write_signed(&mut out, number);
        }
        write_time(&mut out, None);
        write_time(&mut out, Some(Time(-7)));
        write_float(&mut out, -0.1);
        write_varint(&mut out, 300);
        write_float(&mut out, f64::NAN);
        let mut reader = Reader::new(&out);
        assert_eq!(reader.varint(), Ok(u64::MAX));
        for number in [0, 1, -1, i64::MAX, i64::MIN] {
            assert_eq!(reader.signed(), Ok(number));
        }
        assert_eq!((reader.time(), reader.time()), (Ok(None), Ok(Some(Time(-7)))));
        assert_eq!(reader.float(), Ok(-0.1));
        let start = reader.at();
        assert_eq!(reader.small::<u8>(), Err(CompactError::Range(start)));
        let start = reader.at();
        assert_eq!(reader.float(), Err(CompactError::Range(start)), "no number is kept as NaN");
        assert_eq!((reader.left(), reader.byte()), (0, Err(CompactError::Truncated)));
    }
}
