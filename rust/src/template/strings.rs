// SPDX-License-Identifier: Apache-2.0
//! Python's string methods, for methods and filters alike.

use super::arguments::{invalid, Arguments};
use super::budget::{claim, paid, Text, MAX_TEXT, OVERHEAD};
use super::integers;
use super::lists::items_of;
use super::python::{is_printable, kind_name};
use super::split::{self, is_space, strip, strip_left, strip_right};
use super::values::is_tuple;
use minijinja::{Error, Value};
use regex::Regex;
use std::sync::LazyLock;

pub type Method = fn(&str, &Arguments) -> Result<Value, Error>;

/// Name, arguments, function.
pub const METHODS: &[(&str, &[&str], Method)] = &[
    ("capitalize", &[], capitalize),
    ("casefold", &[], casefold),
    ("center", &["width", "fillchar"], |text, given| justify(text, given, both_sides)),
    ("count", &["sub", "start", "end"], count),
    ("endswith", &["suffix", "start", "end"], |text, given| affix(text, given, |text, suffix| text.ends_with(suffix))),
    ("encode", &["encoding", "errors"], encode),
    ("expandtabs", &["tabsize"], expandtabs),
    ("find", &["sub", "start", "end"], find),
    ("index", &["sub", "start", "end"], |text, given| found(position(text, given, false)?)),
    ("isalnum", &[], |text, _| is_all(text, &LETTERS_OR_NUMBERS)),
    ("isalpha", &[], |text, _| is_all(text, &LETTERS)),
    ("isascii", &[], |text, _| Ok(Value::from(text.is_ascii()))),
    ("isdecimal", &[], |text, _| is_all(text, &DECIMALS)),
    ("isdigit", &[], |text, _| is_all(text, &DIGITS)),
    ("isidentifier", &[], |text, _| is_all(text, &IDENTIFIER)),
    ("islower", &[], |text, _| Ok(Value::from(is_lower(text)))),
    ("isnumeric", &[], |text, _| is_all(text, &NUMBERS)),
    ("isprintable", &[], |text, _| Ok(Value::from(text.chars().all(is_printable)))),
    ("isspace", &[], |text, _| Ok(Value::from(!text.is_empty() && text.chars().all(is_space)))),
    ("istitle", &[], istitle),
    ("isupper", &[], |text, _| Ok(Value::from(is_upper(text)))),
    ("join", &["iterable"], join),
    ("ljust", &["width", "fillchar"], |text, given| justify(text, given, |missing, _| (0, missing))),
    ("lower", &[], lower),
    ("lstrip", &["chars"], |text, given| copy(strip_left(text, given.text(0)?))),
    ("partition", &["sep"], split::partition),
    ("removeprefix", &["prefix"], |text, given| copy(text.strip_prefix(given.required_text(0)?).unwrap_or(text))),
    ("removesuffix", &["suffix"], |text, given| copy(text.strip_suffix(given.required_text(0)?).unwrap_or(text))),
    ("replace", &["old", "new", "count"], replace),
    ("rfind", &["sub", "start", "end"], rfind),
    ("rindex", &["sub", "start", "end"], |text, given| found(position(text, given, true)?)),
    ("rjust", &["width", "fillchar"], |text, given| justify(text, given, |missing, _| (missing, 0))),
    ("rpartition", &["sep"], split::rpartition),
    ("rsplit", &["sep", "maxsplit"], split::rsplit),
    ("rstrip", &["chars"], |text, given| copy(strip_right(text, given.text(0)?))),
    ("split", &["sep", "maxsplit"], split::split),
    ("splitlines", &["keepends"], split::splitlines),
    ("startswith", &["prefix", "start", "end"], |text, given| {
        affix(text, given, |text, prefix| text.starts_with(prefix))
    }),
    ("strip", &["chars"], trim),
    ("swapcase", &[], swapcase),
    ("title", &[], title),
    ("translate", &["table"], translate),
    ("upper", &[], upper),
    ("zfill", &["width"], zfill),
];

fn copy(text: &str) -> Result<Value, Error> {
    claim(text.len() + OVERHEAD)?;
    Ok(Value::from(text))
}

/// `str.strip(chars=None)`.
pub fn trim(text: &str, arguments: &Arguments) -> Result<Value, Error> {
    copy(strip(text, arguments.text(0)?))
}

pub fn lower(text: &str, _: &Arguments) -> Result<Value, Error> {
    Ok(Value::from(paid(text.to_lowercase())?))
}

pub fn upper(text: &str, _: &Arguments) -> Result<Value, Error> {
    Ok(Value::from(paid(text.to_uppercase())?))
}

fn swapcase(text: &str, _: &Arguments) -> Result<Value, Error> {
    let swapped = text.chars().flat_map(|c| {
        let (lower, upper) =
            if c.is_uppercase() { (Some(c.to_lowercase()), None) } else { (None, Some(c.to_uppercase())) };
        lower.into_iter().flatten().chain(upper.into_iter().flatten())
    });
    Ok(Value::from(Text::from_chars(swapped)?))
}

/// Full case folding equals the lower case of the upper case, except for the dotless i.
fn casefold(text: &str, _: &Arguments) -> Result<Value, Error> {
    let folded = text.chars().flat_map(|c| {
        let upper: String = if c == 'ı' { c.into() } else { c.to_uppercase().collect() };
        upper.chars().flat_map(char::to_lowercase).collect::<Vec<char>>()
    });
    Ok(Value::from(Text::from_chars(folded)?))
}

/// Upper-cases the letter at the start of a word; of a ligature only the first part.
fn titlecase(c: char) -> impl Iterator<Item = char> {
    let mut upper = c.to_uppercase();
    upper.next().into_iter().chain(upper.flat_map(char::to_lowercase))
}

/// `str.capitalize()`.
pub fn capitalize(text: &str, _: &Arguments) -> Result<Value, Error> {
    let mut chars = text.chars();
    let first: String = chars.next().into_iter().flat_map(titlecase).collect();
    Ok(Value::from(paid(first + &chars.as_str().to_lowercase())?))
}

/// `str.title()`: a word starts at a letter that follows a character without case.
fn title(text: &str, _: &Arguments) -> Result<Value, Error> {
    let mut out = Text::default();
    let mut is_inside = false;
    for c in text.chars() {
        let cased: String = if is_inside { c.to_lowercase().collect() } else { titlecase(c).collect() };
        out.push(&cased)?;
        is_inside = c.is_lowercase() || c.is_uppercase();
    }
    Ok(Value::from(out.into_string()))
}

fn istitle(text: &str, _: &Arguments) -> Result<Value, Error> {
    let (mut is_inside, mut has_word) = (false, false);
    for c in text.chars() {
        if (c.is_uppercase() && is_inside) || (c.is_lowercase() && !is_inside) {
            return Ok(Value::from(false));
        }
        is_inside = c.is_lowercase() || c.is_uppercase();
        has_word |= is_inside;
    }
    Ok(Value::from(has_word))
}

pub fn is_lower(text: &str) -> bool {
    text.chars().any(char::is_lowercase) && !text.chars().any(char::is_uppercase)
}

pub fn is_upper(text: &str) -> bool {
    text.chars().any(char::is_uppercase) && !text.chars().any(char::is_lowercase)
}

/// True if the text is one or more characters of a class.
fn is_all(text: &str, class: &'static LazyLock<Regex>) -> Result<Value, Error> {
    Ok(Value::from(class.find(text).is_some_and(|found| found.len() == text.len())))
}

fn class(characters: &str) -> Regex {
    Regex::new(&format!("^[{characters}]+")).expect("a valid class")
}

static LETTERS: LazyLock<Regex> = LazyLock::new(|| class(r"\p{L}"));
static LETTERS_OR_NUMBERS: LazyLock<Regex> = LazyLock::new(|| class(r"\p{L}\p{N}"));
static DECIMALS: LazyLock<Regex> = LazyLock::new(|| class(r"\p{Nd}"));
static NUMBERS: LazyLock<Regex> = LazyLock::new(|| class(r"\p{N}"));
/// Decimals, and raised, lowered and circled digits.
static DIGITS: LazyLock<Regex> = LazyLock::new(|| {
    class(concat!(
        r"\p{Nd}²³¹፩-፱᧚⁰⁴-⁹₀-₉①-⑨⑴-⑼⒈-⒐⓪⓵-⓽⓿❶-❾➀-➈➊-➒\x{10A40}-\x{10A43}\x{10E60}-\x{10E68}",
        r"\x{11052}-\x{1105A}\x{1F100}-\x{1F10A}"
    ))
});
static WORD: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^\w+").expect("a valid pattern"));
static IDENTIFIER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^[\p{L}\p{Nl}_]\w*").expect("a valid pattern"));

/// True if the character may be part of a name.
pub fn is_word(c: char) -> bool {
    WORD.is_match(c.encode_utf8(&mut [0; 4]))
}

pub fn is_identifier(text: &str) -> bool {
    IDENTIFIER.find(text).is_some_and(|found| found.len() == text.len())
}

fn join(text: &str, arguments: &Arguments) -> Result<Value, Error> {
    let mut out = Text::default();
    for (i, item) in items_of(arguments.required(0)?)?.enumerate() {
        let item = item?;
        let item = item.as_str().ok_or_else(|| invalid(format!("join of {}, strings expected", kind_name(&item))))?;
        out.push(if i > 0 { text } else { "" })?;
        out.push(item)?;
    }
    Ok(Value::from(out.into_string()))
}

/// `text.replace(old, new, count=-1)`.
fn replace(text: &str, arguments: &Arguments) -> Result<Value, Error> {
    let count = arguments.integer(2)?;
    replaced(text, arguments.required_text(0)?, arguments.required_text(1)?, count).map(Value::from)
}

pub fn replaced(text: &str, old: &str, new: &str, count: Option<i64>) -> Result<String, Error> {
    let limit = count.filter(|&n| n >= 0).map_or(usize::MAX, |n| n as usize);
    let found = text.matches(old).take(limit).count();
    let size = text.len().saturating_add(found.saturating_mul(new.len()));
    claim(size.min(MAX_TEXT + 1))?;
    Ok(text.replacen(old, new, limit))
}

/// A position in characters as in Python: negative ones count from the end; limited to the text.
pub fn clamp(position: i64, length: usize) -> usize {
    let length = length as i64;
    (if position < 0 { position.saturating_add(length) } else { position }).clamp(0, length) as usize
}

/// The part that the arguments `start` and `end` select, and its start in characters.
fn window<'a>(text: &'a str, arguments: &Arguments) -> Result<Option<(usize, &'a str)>, Error> {
    let (start, end) = (arguments.integer(1)?, arguments.integer(2)?);
    if start.is_none() && end.is_none() {
        return Ok(Some((0, text)));
    }
    let length = text.chars().count();
    let (first, last) = (clamp(start.unwrap_or(0), length), clamp(end.unwrap_or(i64::MAX), length));
    if start.is_some_and(|start| start > length as i64) || first > last {
        return Ok(None);
    }
    let byte = |index: usize| text.char_indices().nth(index).map_or(text.len(), |(at, _)| at);
    Ok(Some((first, &text[byte(first)..byte(last)])))
}

fn position(text: &str, arguments: &Arguments, from_right: bool) -> Result<Option<i64>, Error> {
    let part = arguments.required_text(0)?;
    Ok(window(text, arguments)?.and_then(|(start, text)| {
        let at = if from_right { text.rfind(part) } else { text.find(part) };
        at.map(|at| (start + text[..at].chars().count()) as i64)
    }))
}

fn find(text: &str, arguments: &Arguments) -> Result<Value, Error> {
    Ok(Value::from(position(text, arguments, false)?.unwrap_or(-1)))
}

fn rfind(text: &str, arguments: &Arguments) -> Result<Value, Error> {
    Ok(Value::from(position(text, arguments, true)?.unwrap_or(-1)))
}

fn found(position: Option<i64>) -> Result<Value, Error> {
    position.map(Value::from).ok_or_else(|| invalid("substring not found"))
}

fn count(text: &str, arguments: &Arguments) -> Result<Value, Error> {
    let part = arguments.required_text(0)?;
    Ok(Value::from(window(text, arguments)?.map_or(0, |(_, text)| text.matches(part).count())))
}

/// `startswith` and `endswith`, of one text or of any of a tuple.
fn affix(text: &str, arguments: &Arguments, is_affix: fn(&str, &str) -> bool) -> Result<Value, Error> {
    let wanted = arguments.required(0)?;
    let window = window(text, arguments)?;
    let has = |affix: &Value| {
        let affix = affix.as_str().ok_or_else(|| invalid(format!("{} as a prefix or suffix", kind_name(affix))))?;
        Ok::<bool, Error>(window.is_some_and(|(_, text)| is_affix(text, affix)))
    };
    if !is_tuple(wanted) {
        return has(wanted).map(Value::from);
    }
    for affix in items_of(wanted)? {
        if has(&affix?)? {
            return Ok(Value::from(true));
        }
    }
    Ok(Value::from(false))
}

/// Splits the missing characters into those before and those after a text; the second argument is the width.
type Sides = fn(usize, usize) -> (usize, usize);

fn justify(text: &str, arguments: &Arguments, sides: Sides) -> Result<Value, Error> {
    let width = arguments.required(0).and_then(|_| arguments.count(0, 0))?;
    let fill = arguments.text(1)?.unwrap_or(" ");
    if fill.chars().count() != 1 {
        return Err(invalid("the fill must be one character"));
    }
    justified(text, width, fill, sides)
}

fn justified(text: &str, width: usize, fill: &str, sides: Sides) -> Result<Value, Error> {
    let (before, after) = sides(width.saturating_sub(text.chars().count()), width);
    let mut out = Text::default();
    out.push_repeated(fill, before)?;
    out.push(text)?;
    out.push_repeated(fill, after)?;
    Ok(Value::from(out.into_string()))
}

/// For an odd width Python puts the odd character on the left.
fn both_sides(missing: usize, width: usize) -> (usize, usize) {
    let before = missing / 2 + (missing & width & 1);
    (before, missing - before)
}

/// The filter `center(value, width=80)`.
pub fn center(text: &str, arguments: &Arguments) -> Result<Value, Error> {
    justified(text, arguments.count(0, 80)?, " ", both_sides)
}

/// True for encodings that `encode` and `decode` know.
fn is_known(arguments: &Arguments) -> Result<bool, Error> {
    let name = arguments.text(0)?.unwrap_or("utf-8").to_ascii_lowercase().replace('_', "-");
    match name.as_str() {
        "utf-8" | "utf8" => Ok(false),
        "ascii" | "us-ascii" => Ok(true),
        _ => Err(invalid(format!("the encoding {name}, utf-8 or ascii expected"))),
    }
}

fn encode(text: &str, arguments: &Arguments) -> Result<Value, Error> {
    if is_known(arguments)? && !text.is_ascii() {
        return Err(invalid("a text that is not ASCII"));
    }
    claim(text.len() + OVERHEAD)?;
    Ok(Value::from_bytes(text.as_bytes().to_vec()))
}

/// `bytes.decode(encoding="utf-8")`.
pub fn decode(value: &Value, arguments: &Arguments) -> Result<Value, Error> {
    let bytes = value.as_bytes().unwrap_or(&[]);
    let is_ascii = is_known(arguments)?;
    match std::str::from_utf8(bytes) {
        Ok(text) if !is_ascii || text.is_ascii() => copy(text),
        _ => Err(invalid("bytes that are no text")),
    }
}

/// `str.translate(table)`: a dict from code points to code points, texts or none.
fn translate(text: &str, arguments: &Arguments) -> Result<Value, Error> {
    let table = arguments.required(0)?;
    let mut out = Text::default();
    for c in text.chars() {
        let found = super::methods::item(table, &Value::from(u32::from(c)))?;
        match (found.as_str(), integers::small(&found)) {
            (Some(text), _) => out.push(text)?,
            (None, Some(code)) => {
                let c = u32::try_from(code).ok().and_then(char::from_u32);
                let c = c.ok_or_else(|| invalid(format!("{code} as a character")))?;
                out.push(c.encode_utf8(&mut [0; 4]))?;
            }
            _ if found.is_none() => {}
            _ => out.push(c.encode_utf8(&mut [0; 4]))?,
        }
    }
    Ok(Value::from(out.into_string()))
}

fn zfill(text: &str, arguments: &Arguments) -> Result<Value, Error> {
    let width = arguments.required(0).and_then(|_| arguments.count(0, 0))?;
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut out = Text::default();
    out.push(&text[..text.len() - digits.len()])?;
    out.push_repeated("0", width.saturating_sub(text.chars().count()))?;
    out.push(digits)?;
    Ok(Value::from(out.into_string()))
}

fn expandtabs(text: &str, arguments: &Arguments) -> Result<Value, Error> {
    let width = arguments.count(0, 8)?;
    let mut out = Text::default();
    let mut column = 0;
    for c in text.chars() {
        match c {
            '\t' => {
                let spaces = if width > 0 { width - column % width } else { 0 };
                out.push_repeated(" ", spaces)?;
                column += spaces;
            }
            c => {
                out.push(c.encode_utf8(&mut [0; 4]))?;
                column = if matches!(c, '\n' | '\r') { 0 } else { column + 1 };
            }
        }
    }
    Ok(Value::from(out.into_string()))
}
