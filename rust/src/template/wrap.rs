// SPDX-License-Identifier: Apache-2.0
//! The filter `wordwrap`: fills lines with chunks, which are runs of white space, words, and parts of words that end in
//! a hyphen.

use super::arguments::{invalid, Arguments};
use super::budget::Text;
use super::split::{is_space, split_lines};
use super::texts::{prefix, text_of};
use minijinja::{Error, Value};

/// The end of a word's first part: after a hyphen with two letters on each side.
fn hyphen_end(word: &str) -> Option<usize> {
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphabetic);
    word.match_indices('-').map(|(at, _)| at).find_map(|at| {
        let (mut before, mut after) = (word[..at].chars().rev(), word[at + 1..].chars());
        let is_inside = is_letter(before.next()) && is_letter(before.next());
        (is_inside && is_letter(after.next()) && is_letter(after.next())).then_some(at + 1)
    })
}

/// The first chunk of a line.
fn chunk(line: &str, on_hyphens: bool) -> &str {
    let is_blank = line.starts_with(is_space);
    let end = line.find(|c| is_space(c) != is_blank).unwrap_or(line.len());
    let cut = if on_hyphens && !is_blank { hyphen_end(&line[..end]) } else { None };
    &line[..cut.unwrap_or(end)]
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// The part of a line that fits a row; `break_long` cuts words that fit no row.
fn row_end(line: &str, width: usize, break_long: bool, on_hyphens: bool) -> usize {
    let (mut end, mut used) = (0, 0);
    while end < line.len() {
        let chunk = chunk(&line[end..], on_hyphens);
        let size = length(chunk);
        if used + size > width {
            return match size > width {
                true if break_long => end + prefix(chunk, width - used).len(),
                true if end == 0 => chunk.len(),
                _ => end,
            };
        }
        (end, used) = (end + chunk.len(), used + size);
    }
    end
}

/// `wordwrap(value, width=79, break_long_words=True, wrapstring="\n", break_on_hyphens=True)`.
pub fn wordwrap(value: &Value, arguments: &Arguments) -> Result<Value, Error> {
    let width = arguments.count(0, 79)?;
    if width == 0 {
        return Err(invalid("wordwrap to a width of 0"));
    }
    let (break_long, on_hyphens) = (arguments.flag(1, true), arguments.flag(3, true));
    let newline = arguments.as_text(2, "\n")?;
    let mut out = Text::default();
    for (number, line) in split_lines(text_of(value)?, false).enumerate() {
        out.push(if number > 0 { &newline } else { "" })?;
        let (mut rest, mut is_first) = (line, true);
        while !rest.is_empty() {
            let (row, tail) = rest.split_at(row_end(rest, width, break_long, on_hyphens));
            let row = row.trim_end_matches(is_space);
            if !row.is_empty() {
                out.push(if is_first { "" } else { &newline })?;
                out.push(row)?;
                is_first = false;
            }
            rest = tail.trim_start_matches(is_space);
        }
    }
    Ok(Value::from(out.into_string()))
}
