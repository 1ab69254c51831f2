// SPDX-License-Identifier: Apache-2.0
//! Splits a template's text into tokens by jinja2's rules with `trim_blocks` and `lstrip_blocks`: the ends of tags, the
//! white space that is removed around them, and the syntax of numbers, names and strings.

use super::arguments::{invalid, set_line};
use super::escapes::unescape;
use super::integers;
use minijinja::{Error, Value};
use std::collections::VecDeque;

#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    Data(String),
    BlockBegin,
    BlockEnd,
    VariableBegin,
    VariableEnd,
    Name(String),
    Text(String),
    Integer(Value),
    Float(f64),
    Operator(&'static str),
    End,
}

/// Longer ones first.
const OPERATORS: [&str; 26] = [
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".",
    ":", "|", ",", ";",
];

/// White space as in Python's `\s` and `str.strip`.
pub use super::split::is_space;

struct Lexer<'s> {
    source: &'s str,
    at: usize,
    line: u32,
    /// True if the next literal text begins a line.
    line_starting: bool,
    tokens: VecDeque<(Token, u32)>,
}

fn is_name_char(c: char) -> bool {
    c == '_' || c.is_alphanumeric() || (!c.is_ascii() && super::strings::is_word(c))
}

/// Bytes of the digits that start here, with single underscores between them.
fn digits_length(text: &str, is_digit: impl Fn(u8) -> bool) -> usize {
    let bytes = text.as_bytes();
    let mut end = 0;
    while end < bytes.len() {
        if is_digit(bytes[end]) {
            end += 1;
        } else if bytes[end] == b'_' && end > 0 && bytes.get(end + 1).is_some_and(|&byte| is_digit(byte)) {
            end += 2;
        } else {
            break;
        }
    }
    end
}

/// Length of the float that starts here, if any.
fn float_length(text: &str) -> Option<usize> {
    let is_digit = |byte: u8| byte.is_ascii_digit();
    let whole = digits_length(text, is_digit);
    if whole == 0 {
        return None;
    }
    let rest = &text[whole..];
    let fraction = rest.strip_prefix('.').map_or(0, |rest| digits_length(rest, is_digit));
    let end = if fraction > 0 { whole + 1 + fraction } else { whole };
    let power = text[end..].strip_prefix(['e', 'E']).map_or(0, |rest| {
        let digits = rest.strip_prefix(['+', '-']).unwrap_or(rest);
        match digits_length(digits, is_digit) {
            0 => 0,
            length => 1 + (rest.len() - digits.len()) + length,
        }
    });
    (fraction > 0 || power > 0).then_some(end + power)
}

/// Length and base of the integer that starts here, if any.
fn integer_length(text: &str) -> Option<(usize, u32)> {
    for (letter, base) in [('b', 2u32), ('o', 8), ('x', 16)] {
        let digits = text.strip_prefix('0').and_then(|rest| rest.strip_prefix([letter, letter.to_ascii_uppercase()]));
        if let Some(digits) = digits {
            let after = digits.strip_prefix('_').unwrap_or(digits);
            let length = digits_length(after, |byte| (byte as char).is_digit(base));
            if length > 0 {
                return Some((2 + digits.len() - after.len() + length, base));
            }
        }
    }
    let length = match text.as_bytes().first()? {
        b'0' => digits_length(text, |byte| byte == b'0'),
        b'1'..=b'9' => digits_length(text, |byte| byte.is_ascii_digit()),
        _ => 0,
    };
    (length > 0).then_some((length, 10))
}

/// Length of the string that starts here, quotes included.
fn string_length(text: &str) -> Option<usize> {
    let quote = text.as_bytes()[0];
    let mut is_escaped = false;
    for (i, byte) in text.bytes().enumerate().skip(1) {
        if byte == quote && !is_escaped {
            return Some(i + 1);
        }
        is_escaped = byte == b'\\' && !is_escaped;
    }
    None
}

fn space_length(text: &str) -> usize {
    text.len() - text.trim_start_matches(is_space).len()
}

impl<'s> Lexer<'s> {
    fn rest(&self) -> &'s str {
        &self.source[self.at..]
    }

    fn fail<T>(&self, text: impl Into<String>) -> Result<T, Error> {
        set_line(self.line);
        Err(invalid(text.into()))
    }

    fn advance(&mut self, bytes: usize) {
        let text = &self.source[self.at..self.at + bytes];
        self.line += text.bytes().filter(|&byte| byte == b'\n').count() as u32;
        self.line_starting = text.ends_with('\n');
        self.at += bytes;
    }

    fn push(&mut self, token: Token) {
        self.tokens.push_back((token, self.line));
    }

    /// Literal text before a tag with this sign.
    fn push_data(&mut self, text: &'s str, sign: Option<u8>, is_variable: bool) {
        let mut kept = text;
        if sign == Some(b'-') {
            kept = text.trim_end_matches(is_space);
        } else if sign != Some(b'+') && !is_variable {
            let line = text.rfind('\n').map_or(0, |at| at + 1);
            let is_blank = line < text.len() && text[line..].chars().all(is_space);
            if (line > 0 || self.line_starting) && is_blank {
                kept = &text[..line];
            }
        }
        if !kept.is_empty() {
            self.push(Token::Data(kept.to_owned()));
        }
    }

    /// Length of a tag's end if one is here: its sign, the end itself, and the white space that it removes.
    fn end_length(&self, end: &str, trims: bool) -> Option<usize> {
        let rest = self.rest();
        if let Some(after) = rest.strip_prefix('-').and_then(|rest| rest.strip_prefix(end)) {
            return Some(1 + end.len() + space_length(after));
        }
        if trims && rest.strip_prefix('+').is_some_and(|rest| rest.starts_with(end)) {
            return Some(1 + end.len());
        }
        let after = rest.strip_prefix(end)?;
        Some(end.len() + usize::from(trims && after.starts_with('\n')))
    }

    fn comment(&mut self) -> Result<(), Error> {
        let start = self.at;
        let Some(end) = self.rest().find("#}") else { return self.fail("a comment without an end") };
        let signed = usize::from(self.source[start..start + end].ends_with(['-', '+']));
        self.advance(end - signed);
        let length = self.end_length("#}", true).unwrap_or(2);
        self.advance(length);
        Ok(())
    }

    /// Length of `{% raw %}` from its white space on, if this is one.
    fn raw_length(after_sign: &str) -> Option<usize> {
        let word = after_sign.trim_start_matches(is_space).strip_prefix("raw")?;
        let end = word.trim_start_matches(is_space);
        let rest = match end.strip_prefix("-%}") {
            Some(rest) => rest.trim_start_matches(is_space),
            None => end.strip_prefix("%}")?,
        };
        Some(after_sign.len() - rest.len())
    }

    fn raw(&mut self) -> Result<(), Error> {
        let body = self.rest();
        let mut from = 0;
        while let Some(found) = body[from..].find("{%").map(|at| at + from) {
            let sign = body.as_bytes().get(found + 2).copied().filter(|byte| b"-+".contains(byte));
            let tag = &body[found + 2 + usize::from(sign.is_some())..];
            if let Some(word) = tag.trim_start_matches(is_space).strip_prefix("endraw") {
                let end = word.trim_start_matches(is_space);
                self.push_data(&body[..found], sign, false);
                let before = self.at;
                self.advance(body.len() - end.len());
                let Some(length) = self.end_length("%}", true) else {
                    self.at = before;
                    return self.fail("a broken endraw");
                };
                self.advance(length);
                return Ok(());
            }
            from = found + 2;
        }
        self.fail("a raw block without an end")
    }

    /// One token of a tag.
    fn tag_token(&mut self, brackets: &mut Vec<u8>) -> Result<(), Error> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return self.fail("a tag without an end") };
        if is_space(first) {
            self.advance(space_length(rest));
            return Ok(());
        }
        let follows_point = self.source[..self.at].ends_with('.');
        if let Some(length) = float_length(rest).filter(|_| !follows_point) {
            let number = rest[..length].replace('_', "").parse().unwrap_or(f64::NAN);
            self.push(Token::Float(number));
            self.advance(length);
        } else if let Some((length, base)) = integer_length(rest) {
            let digits = if base == 10 { &rest[..length] } else { &rest[2..length] };
            let Some(number) = integers::parse(&digits.replace('_', ""), base) else {
                return self.fail("an integer with too many digits");
            };
            self.push(Token::Integer(number));
            self.advance(length);
        } else if is_name_char(first) {
            let length = rest.find(|c| !is_name_char(c)).unwrap_or(rest.len());
            if !super::strings::is_identifier(&rest[..length]) {
                return self.fail(format!("{} is no name", &rest[..length]));
            }
            self.push(Token::Name(rest[..length].to_owned()));
            self.advance(length);
        } else if matches!(first, '"' | '\'') {
            let Some(length) = string_length(rest) else { return self.fail("a string without an end") };
            set_line(self.line);
            self.push(Token::Text(unescape(&rest[1..length - 1])?));
            self.advance(length);
        } else {
            let Some(operator) = OPERATORS.into_iter().find(|operator| rest.starts_with(operator)) else {
                return self.fail(format!("{first:?} in a tag"));
            };
            match operator.as_bytes()[0] {
                open @ (b'(' | b'[' | b'{') => brackets.push(open),
                close @ (b')' | b']' | b'}') => {
                    let expected = brackets.pop().map(|open| if open == b'(' { b')' } else { open + 2 });
                    if expected != Some(close) {
                        return self.fail(format!("a {operator} that closes nothing"));
                    }
                }
                _ => {}
            }
            self.push(Token::Operator(operator));
            self.advance(operator.len());
        }
        Ok(())
    }

    fn tag(&mut self, is_variable: bool) -> Result<(), Error> {
        let (begin, end, close) = match is_variable {
            true => (Token::VariableBegin, Token::VariableEnd, "}}"),
            false => (Token::BlockBegin, Token::BlockEnd, "%}"),
        };
        self.push(begin);
        let mut brackets = Vec::new();
        loop {
            if let Some(length) = self.end_length(close, !is_variable).filter(|_| brackets.is_empty()) {
                self.push(end);
                self.advance(length);
                return Ok(());
            }
            self.tag_token(&mut brackets)?;
        }
    }

    fn run(&mut self) -> Result<(), Error> {
        while self.at < self.source.len() {
            let rest = self.rest();
            let is_tag = |&at: &usize| rest.as_bytes().get(at + 1).is_some_and(|byte| b"{%#".contains(byte));
            let Some(at) = rest.match_indices('{').map(|(at, _)| at).find(is_tag) else {
                self.push(Token::Data(rest.to_owned()));
                self.advance(rest.len());
                break;
            };
            let kind = rest.as_bytes()[at + 1];
            let sign = rest.as_bytes().get(at + 2).copied().filter(|byte| b"-+".contains(byte));
            self.push_data(&rest[..at], sign, kind == b'{');
            let opened = at + 2 + usize::from(sign.is_some());
            let raw = if kind == b'%' { Self::raw_length(&rest[opened..]) } else { None };
            self.advance(opened + raw.unwrap_or(0));
            match kind {
                b'#' => self.comment()?,
                _ if raw.is_some() => self.raw()?,
                _ => self.tag(kind == b'{')?,
            }
        }
        self.push(Token::End);
        Ok(())
    }
}

/// All tokens with their lines, `End` last.
pub fn tokenize(source: &str) -> Result<VecDeque<(Token, u32)>, Error> {
    let mut source = source.replace("\r\n", "\n").replace('\r', "\n");
    if source.ends_with('\n') {
        source.pop();
    }
    let mut lexer = Lexer { source: &source, at: 0, line: 1, line_starting: true, tokens: VecDeque::new() };
    lexer.run()?;
    Ok(lexer.tokens)
}
