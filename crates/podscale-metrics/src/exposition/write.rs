//! Writes the parts of exposition text that need care.

use std::fmt::{Display, Write};

/// The value of a label, with what must not stand there escaped.
pub struct Label<'a>(pub &'a str);

impl Display for Label<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for character in self.0.chars() {
            match character {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\\"")?,
                '\n' => f.write_str("\\n")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

/// A sample's value: the shortest text that reads back the same, large ones with an exponent.
pub struct Number(pub f64);

impl Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let number = self.0;
        if number.is_nan() {
            return f.write_str("NaN");
        }
        if number.is_infinite() {
            return f.write_str(if number > 0.0 { "+Inf" } else { "-Inf" });
        }
        if number != 0.0 && !(1e-4..1e21).contains(&number.abs()) {
            let text = format!("{number:e}");
            let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(exponent) => ('-', exponent),
                None => ('+', exponent),
            };
            return write!(f, "{digits}e{sign}{exponent:0>2}");
        }
        write!(f, "{number}")
    }
}
