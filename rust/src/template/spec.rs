// SPDX-License-Identifier: Apache-2.0
//! Writes one value in a Python format; shared by `format % arguments` and `format.format(...)`.

use super::arguments::invalid;
use super::budget::Text;
use super::integers;
use super::python::{float_repr, kind_name};
use minijinja::{Error, Value};
use std::iter::Peekable;
use std::str::Chars;

/// Widths and precisions above this are refused.
pub const MAX_WIDTH: usize = 65_535;

pub struct Spec {
    pub fill: char,
    /// One of `<>^=`.
    pub align: Option<char>,
    /// The sign of a number that is not negative.
    pub plus: &'static str,
    pub is_alternate: bool,
    pub width: usize,
    pub grouping: Option<char>,
    pub precision: Option<usize>,
    pub kind: Option<char>,
}

/// A number before it is padded: the prefix of its digits, and the digits.
pub struct Digits {
    is_negative: bool,
    prefix: &'static str,
    pub digits: String,
    group_size: usize,
}

pub fn wrong_value(kind: Option<char>, value: &Value) -> Error {
    invalid(format!("format {} of {}", kind.unwrap_or('s'), kind_name(value)))
}

fn exponent_form(x: f64, precision: usize, is_alternate: bool) -> String {
    let text = format!("{x:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let point = if is_alternate && precision == 0 { "." } else { "" };
    format!("{mantissa}{point}e{:+03}", exponent.parse::<i32>().unwrap_or(0))
}

/// `%g`: `precision` significant digits, with an exponent below 1e-4 and from 10**`limit` on.
fn general_form(x: f64, precision: usize, limit: i32, is_alternate: bool) -> String {
    let text = exponent_form(x, precision - 1, false);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let power = exponent.parse::<i32>().unwrap_or(0);
    let shorten = |digits: &str| match digits.contains('.') && !is_alternate {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => digits.to_owned(),
    };
    if (-4..limit).contains(&power) {
        return shorten(&format!("{x:.*}", (precision as i32 - 1 - power).max(0) as usize));
    }
    format!("{}e{exponent}", shorten(mantissa))
}

impl Spec {
    pub fn new() -> Self {
        Spec {
            fill: ' ',
            align: None,
            plus: "",
            is_alternate: false,
            width: 0,
            grouping: None,
            precision: None,
            kind: None,
        }
    }

    pub fn pad(&self, out: &mut Text, text: &str, default: char) -> Result<(), Error> {
        let missing = self.width.saturating_sub(text.chars().count());
        let before = match self.align.unwrap_or(default) {
            '<' => 0,
            '^' => missing / 2,
            _ => missing,
        };
        let fill = self.fill.encode_utf8(&mut [0; 4]).to_owned();
        out.push_repeated(&fill, before)?;
        out.push(text)?;
        Ok(out.push_repeated(&fill, missing - before)?)
    }

    pub fn integer(&self, value: &Value) -> Result<Digits, Error> {
        let number = integers::integer(value).ok_or_else(|| wrong_value(self.kind, value))?;
        let size = number.magnitude();
        let (prefix, digits, group_size) = match self.kind {
            Some('b') => ("0b", format!("{size:b}"), 4),
            Some('o') => ("0o", format!("{size:o}"), 4),
            Some('x') => ("0x", format!("{size:x}"), 4),
            Some('X') => ("0X", format!("{size:X}"), 4),
            _ => ("", integers::write(&integers::from_big(size.clone().into()))?, 3),
        };
        Ok(Digits {
            is_negative: number.sign() == num_bigint::Sign::Minus,
            prefix: if self.is_alternate { prefix } else { "" },
            digits,
            group_size,
        })
    }

    fn float(&self, x: f64) -> Digits {
        let (size, precision) = (x.abs(), self.precision.unwrap_or(6));
        let lower = self.kind.map(|kind| kind.to_ascii_lowercase());
        let mut digits = match lower {
            _ if !x.is_finite() => float_repr(size),
            Some('e') => exponent_form(size, precision, self.is_alternate),
            Some('f' | '%') => {
                let percent = lower == Some('%');
                let point = if self.is_alternate && precision == 0 { "." } else { "" };
                let size = if percent { size * 100.0 } else { size };
                format!("{size:.precision$}{point}{}", if percent { "%" } else { "" })
            }
            Some(_) => general_form(size, precision.max(1), precision.max(1) as i32, self.is_alternate),
            None if self.precision.is_none() => float_repr(size),
            None => {
                let text = general_form(size, precision.max(1), precision.max(1) as i32 - 1, self.is_alternate);
                if text.contains(['.', 'e']) {
                    text
                } else {
                    text + ".0"
                }
            }
        };
        if self.kind.is_some_and(|kind| kind.is_ascii_uppercase()) {
            digits = digits.to_uppercase();
        }
        Digits { is_negative: x.is_sign_negative() && !x.is_nan(), prefix: "", digits, group_size: 3 }
    }

    fn group(&self, digits: &str, size: usize, width: usize) -> String {
        let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
        let end = if size == 3 { digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(end) } else { end };
        let (whole, rest) = digits.split_at(end);
        let mut out = String::new();
        for (i, c) in whole.chars().rev().chain(std::iter::repeat('0')).enumerate() {
            if i >= whole.len() && out.len() + rest.len() >= width {
                break;
            }
            if let (true, Some(separator)) = (i > 0 && i % size == 0, self.grouping) {
                out.push(separator);
            }
            out.push(c);
        }
        out.chars().rev().collect::<String>() + rest
    }

    pub fn write_number(&self, out: &mut Text, number: Digits) -> Result<(), Error> {
        let sign = if number.is_negative { "-" } else { self.plus };
        let is_inside = self.align == Some('=');
        let taken = sign.len() + number.prefix.len();
        let zeros = if is_inside && self.fill == '0' { self.width.saturating_sub(taken) } else { 0 };
        let digits = self.group(&number.digits, number.group_size, zeros);
        if !is_inside {
            return self.pad(out, &format!("{sign}{}{digits}", number.prefix), '>');
        }
        out.push(sign)?;
        out.push(number.prefix)?;
        let missing = self.width.saturating_sub(taken + digits.len());
        out.push_repeated(self.fill.encode_utf8(&mut [0; 4]), missing)?;
        Ok(out.push(&digits)?)
    }

    pub fn write_text(&self, out: &mut Text, text: &str, default: char) -> Result<(), Error> {
        let end = self.precision.and_then(|precision| text.char_indices().nth(precision));
        self.pad(out, &text[..end.map_or(text.len(), |(at, _)| at)], default)
    }

    pub fn write_char(&self, out: &mut Text, value: &Value) -> Result<(), Error> {
        let code = u32::try_from(value.clone()).ok().and_then(char::from_u32);
        let c = code.ok_or_else(|| wrong_value(self.kind, value))?;
        self.pad(out, c.encode_utf8(&mut [0; 4]), '>')
    }

    pub fn float_of(&self, value: &Value) -> Result<Digits, Error> {
        integers::float(value).map(|x| self.float(x)).map_err(|_| wrong_value(self.kind, value))
    }
}

/// The characters of a format that are still to be read.
pub struct Format<'a>(pub Peekable<Chars<'a>>);

impl Format<'_> {
    pub fn take(&mut self, wanted: &str) -> Option<char> {
        self.0.next_if(|&c| wanted.contains(c))
    }

    pub fn number(&mut self) -> Result<Option<usize>, Error> {
        let mut number = None;
        while let Some(digit) = self.0.next_if(char::is_ascii_digit).and_then(|c| c.to_digit(10)) {
            number = Some(number.unwrap_or(0) * 10 + digit as usize);
            if number > Some(MAX_WIDTH) {
                return Err(invalid("format width is too large"));
            }
        }
        Ok(number)
    }

    pub fn until(&mut self, end: char) -> Result<String, Error> {
        let mut text = String::new();
        loop {
            match self.0.next() {
                Some(c) if c == end => return Ok(text),
                Some(c) => text.push(c),
                None => return Err(invalid(format!("a format without its {end}"))),
            }
        }
    }
}
