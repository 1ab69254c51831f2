// SPDX-License-Identifier: Apache-2.0
//! Filters that make texts for people: file sizes, HTML without its tags, links, and values over several lines.

use super::arguments::{invalid, Arguments};
use super::budget::{check_time, claim, Text, OVERHEAD};
use super::compare::order;
use super::integers;
use super::numbers::as_float;
use super::python::{kind_name, to_repr, to_text};
use super::split::is_space;
use super::texts::push_escaped;
use super::values::{dict_of, is_tuple, slice_of, Dict};
use minijinja::{Error, Value};
use regex::Regex;
use std::sync::LazyLock;

/// `filesizeformat(value, binary=False)`.
pub fn filesizeformat(value: &Value, arguments: &Arguments) -> Result<Value, Error> {
    let size = as_float(value).ok_or_else(|| invalid(format!("the size of a file is {}", kind_name(value))))?;
    let (base, suffix) = if arguments.flag(0, false) { (1024.0, "iB") } else { (1000.0, "B") };
    if size == 1.0 {
        return Ok(Value::from("1 Byte"));
    }
    if size < base {
        let whole = integers::from_float(size).ok_or_else(|| invalid("the size of a file is no number"))?;
        return Ok(Value::from(format!("{} Bytes", integers::write(&whole)?)));
    }
    let first = if suffix == "B" { "k" } else { "K" };
    let mut unit = base;
    let mut prefix = first;
    for next in [first, "M", "G", "T", "P", "E", "Z", "Y"] {
        prefix = next;
        unit *= base;
        if size < unit {
            break;
        }
    }
    Ok(Value::from(format!("{:.1} {prefix}{suffix}", base * size / unit)))
}

/// The text without the parts from `begin` to `end`.
fn without(text: &str, begin: &str, end: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once(begin) {
        let Some((_, after)) = after.split_once(end) else { break };
        out.push_str(before);
        rest = after;
    }
    out + rest
}

const ENTITIES: [(&str, &str); 8] = [
    ("amp", "&"),
    ("apos", "'"),
    ("copy", "©"),
    ("gt", ">"),
    ("hellip", "…"),
    ("lt", "<"),
    ("nbsp", "\u{a0}"),
    ("quot", "\""),
];

fn unescaped(text: &str) -> String {
    static ENTITY: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-z]+));").expect("a valid pattern"));
    ENTITY
        .replace_all(text, |found: &regex::Captures| {
            let code =
                |group: usize, radix| found.get(group).and_then(|code| u32::from_str_radix(code.as_str(), radix).ok());
            let named = found.get(3).and_then(|name| ENTITIES.iter().find(|entity| entity.0 == name.as_str()));
            match (code(1, 10).or_else(|| code(2, 16)).and_then(char::from_u32), named) {
                (Some(c), _) => c.to_string(),
                (None, Some(entity)) => entity.1.to_owned(),
                _ => found[0].to_owned(),
            }
        })
        .into_owned()
}

/// `striptags(value)`.
pub fn striptags(value: &Value, _: &Arguments) -> Result<Value, Error> {
    let text = to_text(value)?;
    claim(4 * text.len() + OVERHEAD)?;
    let text = without(&without(&text, "<!--", "-->"), "<", ">");
    let words: Vec<&str> = text.split(is_space).filter(|word| !word.is_empty()).collect();
    Ok(Value::from(unescaped(&words.join(" "))))
}

/// `random(value)`.
pub fn random(value: &Value, _: &Arguments) -> Result<Value, Error> {
    use std::hash::{BuildHasher, RandomState};
    let length = value.len().ok_or_else(|| invalid(format!("{} has no length", kind_name(value))))?;
    if length == 0 {
        return Ok(Value::UNDEFINED);
    }
    let index = RandomState::new().hash_one(length) % length as u64;
    super::methods::item(value, &Value::from(index))
}

/// Columns of a line; longer values are written over several lines.
const WIDTH: usize = 80;

/// A value as `repr` writes it, with sorted keys of dicts.
fn sorted_repr(value: &Value, depth: usize) -> Result<String, Error> {
    check_time()?;
    let brackets = if is_tuple(value) { ["(", ")"] } else { ["[", "]"] };
    if depth > super::python::MAX_DEPTH {
        return Err(super::python::too_deep());
    }
    let mut out = Text::default();
    if let Some(dict) = dict_of(value) {
        out.push("{")?;
        for (i, (key, item)) in sorted_pairs(dict).into_iter().enumerate() {
            out.push(if i > 0 { ", " } else { "" })?;
            out.push(&sorted_repr(&key, depth + 1)?)?;
            out.push(": ")?;
            out.push(&sorted_repr(&item, depth + 1)?)?;
        }
        out.push("}")?;
    } else if let Some(items) = slice_of(value) {
        out.push(brackets[0])?;
        for (i, item) in items.iter().enumerate() {
            out.push(if i > 0 { ", " } else { "" })?;
            out.push(&sorted_repr(item, depth + 1)?)?;
        }
        out.push(if is_tuple(value) && items.len() == 1 { "," } else { "" })?;
        out.push(brackets[1])?;
    } else {
        return to_repr(value);
    }
    Ok(out.into_string())
}

/// Pairs sorted by their keys; keys without an order keep their places.
fn sorted_pairs(dict: &Dict) -> Vec<(Value, Value)> {
    let mut pairs: Vec<(Value, Value)> = dict.pairs().cloned().collect();
    pairs.sort_by(|a, b| order(&a.0, &b.0).unwrap_or(std::cmp::Ordering::Equal));
    pairs
}

fn write_lines(out: &mut Text, value: &Value, indent: usize, allowance: usize, depth: usize) -> Result<(), Error> {
    let line = sorted_repr(value, depth)?;
    if line.chars().count() + indent + allowance <= WIDTH {
        return Ok(out.push(&line)?);
    }
    let separator = format!(",\n{}", " ".repeat(indent + 1));
    if let Some(dict) = dict_of(value) {
        let pairs = sorted_pairs(dict);
        out.push("{")?;
        for (i, (key, item)) in pairs.iter().enumerate() {
            let key = sorted_repr(key, depth + 1)?;
            let is_last = i + 1 == pairs.len();
            out.push(if i > 0 { &separator } else { "" })?;
            out.push(&key)?;
            out.push(": ")?;
            write_lines(
                out,
                item,
                indent + 1 + key.chars().count() + 2,
                if is_last { allowance + 1 } else { 1 },
                depth + 1,
            )?;
        }
        return Ok(out.push("}")?);
    }
    let Some(items) = slice_of(value) else { return Ok(out.push(&line)?) };
    let (open, close) = match (is_tuple(value), items.len()) {
        (true, 1) => ("(", ",)"),
        (true, _) => ("(", ")"),
        (false, _) => ("[", "]"),
    };
    out.push(open)?;
    for (i, item) in items.iter().enumerate() {
        let is_last = i + 1 == items.len();
        out.push(if i > 0 { &separator } else { "" })?;
        write_lines(out, item, indent + 1, if is_last { allowance + close.len() } else { 1 }, depth + 1)?;
    }
    Ok(out.push(close)?)
}

/// `pprint(value)`.
pub fn pprint(value: &Value, _: &Arguments) -> Result<Value, Error> {
    let mut out = Text::default();
    write_lines(&mut out, value, 0, 0, 0)?;
    Ok(Value::from(out.into_string()))
}

static LINK: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(https?://|www\.)(([\w%-]+\.)+)?([a-z]{2,63}|xn--[\w%]{2,59}|([\w%-]{2,63}\.)+(com|net|int|edu|gov|org|info|mil)|\d{1,3}(\.\d{1,3}){3}|\[([\da-f]{0,4}:){2}([\da-f]{0,4}:?){1,6}\])(:\d{1,5})?([/?#]\S*)?$|^([\w%-]{2,63}\.)+(com|net|int|edu|gov|org|info|mil)(:\d{1,5})?([/?#]\S*)?$")
        .expect("a valid pattern")
});
static MAIL: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^\S+@\w[\w.-]*\.\w+$").expect("a valid pattern"));

fn escaped(text: &str) -> Result<String, Error> {
    let mut out = Text::default();
    push_escaped(&mut out, text)?;
    Ok(out.into_string())
}

/// One word as a link, or none if it is not one.
fn link(word: &str, attributes: &str, shown: impl Fn(&str) -> String) -> Option<String> {
    let is_web = LINK.is_match(&word.to_lowercase());
    let has_scheme = ["http://", "https://"].iter().any(|scheme| word.to_ascii_lowercase().starts_with(scheme));
    if is_web {
        let address = if has_scheme { word.to_owned() } else { format!("https://{word}") };
        return Some(format!("<a href=\"{address}\"{attributes}>{}</a>", shown(word)));
    }
    let mail = word.strip_prefix("mailto:").unwrap_or(word);
    if MAIL.is_match(mail) && !mail.starts_with("www.") && !mail.contains(':') {
        return Some(format!("<a href=\"mailto:{mail}\">{mail}</a>"));
    }
    None
}

/// `urlize(value, trim_url_limit=None, nofollow=False, target=None, rel=None)`.
pub fn urlize(value: &Value, arguments: &Arguments) -> Result<Value, Error> {
    let text = escaped(&to_text(value)?)?;
    let limit = arguments.integer(0)?.map(|limit| limit.max(0) as usize);
    let mut rels: Vec<&str> = arguments.text(3)?.unwrap_or("").split(is_space).filter(|rel| !rel.is_empty()).collect();
    rels.extend(arguments.flag(1, false).then_some("nofollow"));
    rels.push("noopener");
    rels.sort_unstable();
    rels.dedup();
    let target = arguments
        .text(2)?
        .map_or(Ok(String::new()), |target| Ok::<_, Error>(format!(" target=\"{}\"", escaped(target)?)))?;
    let attributes = format!(" rel=\"{}\"{target}", escaped(&rels.join(" "))?);
    let shown = |word: &str| match limit {
        Some(limit) if word.chars().count() > limit => word.chars().take(limit).chain("...".chars()).collect(),
        _ => word.to_owned(),
    };
    let mut out = Text::default();
    for piece in text.split_inclusive(is_space).flat_map(|piece| {
        let end = piece.trim_end_matches(is_space).len();
        [&piece[..end], &piece[end..]]
    }) {
        let head_end = piece.len() - piece.trim_start_matches(['(', '<']).trim_start_matches("&lt;").len();
        let (head, middle) = piece.split_at(head_end);
        let kept = middle.trim_end_matches(['.', ',', '\n', ')', '>']).trim_end_matches("&gt;");
        let (middle, tail) = middle.split_at(kept.len());
        out.push(head)?;
        out.push(&link(middle, &attributes, shown).unwrap_or_else(|| middle.to_owned()))?;
        out.push(tail)?;
    }
    Ok(Value::from(out.into_string()))
}
