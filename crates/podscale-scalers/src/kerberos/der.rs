//! As much of ASN.1's distinguished encoding as the messages of Kerberos need.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

pub(super) const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const BITS: u8 = 0x03;
const OCTETS: u8 = 0x04;
const TEXT: u8 = 0x1b;
const TIME: u8 = 0x18;

/// That something is not what the protocol has at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// The tag of a field of a sequence.
const fn field(number: u8) -> u8 {
    0xa0 | number
}

/// The tag of a message.
pub(super) const fn application(number: u8) -> u8 {
    0x60 | number
}

/// A value behind its tag and length.
pub(super) fn value(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut all = Vec::with_capacity(content.len().saturating_add(6));
    all.push(tag);
    match u8::try_from(content.len()) {
        Ok(short) if short < 0x80 => all.push(short),
        _ => {
            let length = content.len().to_be_bytes();
            let zeros = length.iter().take_while(|byte| **byte == 0).count();
            let length = &length[zeros..];
            all.push(0x80 | u8::try_from(length.len()).unwrap_or(8));
            all.extend(length);
        }
    }
    all.extend(content);
    all
}

/// A sequence of fields, by number.
pub(super) fn sequence(fields: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let fields: Vec<u8> =
        fields.iter().flat_map(|(number, content)| value(field(*number), content)).collect();
    value(SEQUENCE, &fields)
}

/// A list of values.
pub(super) fn list(values: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    value(SEQUENCE, &values.into_iter().flatten().collect::<Vec<u8>>())
}

/// A whole number, in as few bytes as it needs.
pub(super) fn integer(number: i64) -> Vec<u8> {
    let bytes = number.to_be_bytes();
    let is_sign = |pair: &[u8]| {
        matches!(pair, [0, next, ..] if *next < 0x80)
            || matches!(pair, [0xff, next, ..] if *next >= 0x80)
    };
    let mut rest = &bytes[..];
    while is_sign(rest) {
        rest = &rest[1..];
    }
    value(INTEGER, rest)
}

/// Bytes.
pub(super) fn octets(bytes: &[u8]) -> Vec<u8> {
    value(OCTETS, bytes)
}

/// 32 flags.
pub(super) fn flags(flags: u32) -> Vec<u8> {
    value(BITS, &[&[0][..], &flags.to_be_bytes()].concat())
}

/// A text.
pub(super) fn text(text: &str) -> Vec<u8> {
    value(TEXT, text.as_bytes())
}

/// A time, to the second.
pub(super) fn time(time: Timestamp) -> Vec<u8> {
    value(TIME, time.strftime("%Y%m%d%H%M%SZ").to_string().as_bytes())
}

/// What is left of something that is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next value, whatever it is.
    fn next(&mut self) -> Result<(u8, Reader<'a>), Malformed> {
        let [tag, length, rest @ ..] = self.0 else { return Err(Malformed) };
        let (length, rest) = match length {
            0..=0x7f => (usize::from(*length), rest),
            0x81..=0x84 => {
                let (bytes, rest) =
                    rest.split_at_checked(usize::from(length & 0x7f)).ok_or(Malformed)?;
                let length = bytes.iter().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte));
                (usize::try_from(length).map_err(|_| Malformed)?, rest)
            }
            _ => return Err(Malformed),
        };
        let (content, rest) = rest.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok((*tag, Reader(content)))
    }

    /// The next value, which must have a tag.
    pub(super) fn value(&mut self, tag: u8) -> Result<Reader<'a>, Malformed> {
        let (found, content) = self.next()?;
        if found == tag { Ok(content) } else { Err(Malformed) }
    }

    /// A field of a sequence, if it is there; those before it are passed over.
    pub(super) fn optional(&mut self, number: u8) -> Result<Option<Reader<'a>>, Malformed> {
        while let Some(tag) = self.0.first().copied() {
            match tag.cmp(&field(number)) {
                std::cmp::Ordering::Less => drop(self.next()?),
                std::cmp::Ordering::Equal => return self.next().map(|(_, content)| Some(content)),
                std::cmp::Ordering::Greater => return Ok(None),
            }
        }
        Ok(None)
    }

    /// A field of a sequence that must be there.
    pub(super) fn field(&mut self, number: u8) -> Result<Reader<'a>, Malformed> {
        self.optional(number)?.ok_or(Malformed)
    }

    /// All values of a list.
    pub(super) fn list<T>(
        mut self,
        mut read: impl FnMut(&mut Reader<'a>) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let mut content = self.value(SEQUENCE)?;
        let mut all = Vec::new();
        while !content.is_empty() {
            all.push(read(&mut content)?);
        }
        Ok(all)
    }

    /// A whole number.
    pub(super) fn integer(&mut self) -> Result<i64, Malformed> {
        let Reader(bytes) = self.value(INTEGER)?;
        let [first, ..] = bytes else { return Err(Malformed) };
        if bytes.len() > 8 {
            return Err(Malformed);
        }
        let sign = if *first < 0x80 { 0 } else { -1 };
        Ok(bytes.iter().fold(sign, |sum, byte| sum << 8 | i64::from(*byte)))
    }

    /// Bytes.
    pub(super) fn octets(&mut self) -> Result<&'a [u8], Malformed> {
        Ok(self.value(OCTETS)?.0)
    }

    /// A text; what is not UTF-8 in it is replaced.
    pub(super) fn text(&mut self) -> Result<String, Malformed> {
        Ok(String::from_utf8_lossy(self.value(TEXT)?.0).into_owned())
    }

    /// A time, to the second.
    pub(super) fn time(&mut self) -> Result<Timestamp, Malformed> {
        let Reader(bytes) = self.value(TIME)?;
        let digits = bytes.strip_suffix(b"Z").filter(|digits| digits.len() == 14);
        let digits = digits.ok_or(Malformed)?;
        let number = |from: usize, to: usize| {
            digits.get(from..to)?.iter().try_fold(0_i16, |sum, digit| {
                let digit = digit.is_ascii_digit().then(|| i16::from(digit - b'0'))?;
                Some(sum.saturating_mul(10).saturating_add(digit))
            })
        };
        let small = |from: usize| i8::try_from(number(from, from + 2)?).ok();
        let read = || {
            let date = (number(0, 4)?, small(4)?, small(6)?);
            let (hour, minute, second) = (small(8)?, small(10)?, small(12)?);
            let time = DateTime::new(date.0, date.1, date.2, hour, minute, second, 0).ok()?;
            time.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
        };
        read().ok_or(Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths_are_short_or_long() {
        for (length, head) in [
            (0, &[4, 0][..]),
            (127, &[4, 127]),
            (128, &[4, 0x81, 128]),
            (256, &[4, 0x82, 1, 0]),
            (70_000, &[4, 0x83, 1, 0x11, 0x70]),
        ] {
            let written = octets(&vec![7; length]);
            assert_eq!(&written[..head.len()], head);
            assert_eq!(Reader(&written).octets(), Ok(&vec![7; length][..]));
        }
    }

    #[test]
    fn fields_that_are_not_asked_for_are_passed_over() {
        let written = sequence(&[(0, integer(5)), (2, text("a")), (9, octets(b"b"))]);
        let mut fields = Reader(&written).value(SEQUENCE).expect("a sequence");
        assert!(fields.optional(1).expect("none").is_none());
        assert_eq!(fields.field(2).expect("a field").text(), Ok("a".to_owned()));
        assert_eq!(fields.field(9).expect("a field").octets(), Ok(&b"b"[..]));
        assert!(fields.field(10).is_err());
    }

    #[test]
    fn what_is_not_der_is_refused() {
        for bytes in
            [&[][..], &[4], &[4, 1], &[4, 0x80], &[4, 0x85, 0, 0, 0, 0, 0], &[4, 0x84, 255]]
        {
            assert_eq!(Reader(bytes).octets(), Err(Malformed), "{bytes:?}");
        }
        for time in ["20260101000000", "2026010100000Z", "20261301000000Z", "2026-101000000Z"] {
            assert_eq!(Reader(&value(TIME, time.as_bytes())).time(), Err(Malformed), "{time}");
        }
        assert_eq!(Reader(&value(INTEGER, &[0; 9])).integer(), Err(Malformed));
        assert_eq!(Reader(&value(INTEGER, &[])).integer(), Err(Malformed));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(number: i64, seconds in 0_i64..4_000_000_000, word in ".{0,200}") {
            prop_assert_eq!(Reader(&integer(number)).integer(), Ok(number));
            let at = Timestamp::from_second(seconds).expect("a time");
            prop_assert_eq!(Reader(&time(at)).time(), Ok(at));
            prop_assert_eq!(Reader(&text(&word)).text(), Ok(word));
        }

        #[test]
        fn nothing_panics(bytes: Vec<u8>) {
            let mut reader = Reader(&bytes);
            while reader.next().is_ok() {}
            let _ = Reader(&bytes).list(|reader| reader.integer());
            let _ = Reader(&bytes).optional(3);
            let _ = Reader(&bytes).time();
        }
    }
}
