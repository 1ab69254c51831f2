// SPDX-License-Identifier: Apache-2.0
//! From a template as transformers reads it to one that the engine reads the same way: line ends are `\n`, strings hold
//! no escapes but those that they need, and `{% generation %}`, which marks the assistant's words for training, becomes
//! a plain scope. Comments and raw blocks stay as they are, and so does what is no template; the parser tells.

use super::arguments::invalid;
use minijinja::Error;
use regex::Regex;
use std::sync::LazyLock;

static END_RAW: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\{%[-+]?\s*endraw\s*[-+]?%\}").expect("a valid pattern"));

/// How long the string is that starts here, quotes included.
fn string_length(text: &str) -> usize {
    let quote = text.as_bytes()[0];
    let mut is_escaped = false;
    for (i, byte) in text.bytes().enumerate().skip(1) {
        if byte == quote && !is_escaped {
            return i + 1;
        }
        is_escaped = byte == b'\\' && !is_escaped;
    }
    text.len()
}

/// How long the tag is that starts here, up to its end outside strings and brackets.
fn tag_length(text: &str) -> usize {
    let end = if text.starts_with("{{") { "}}" } else { "%}" };
    let (mut at, mut depth) = (2, 0usize);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        match rest[0] {
            b'"' | b'\'' => at += string_length(&text[at..]) - 1,
            _ if depth == 0 && rest.starts_with(end.as_bytes()) => return at + end.len(),
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    text.len()
}

/// The character that an escape with digits stands for, and where the text goes on.
fn coded(text: &str, digits: usize, radix: u32) -> Option<(char, &str)> {
    let code = u32::from_str_radix(text.get(..digits)?, radix).ok()?;
    let rest = &text[digits..];
    let low = |rest: &str| u32::from_str_radix(rest.strip_prefix("\\u")?.get(..4)?, 16).ok();
    match (code, low(rest)) {
        // Two halves of one character.
        (0xd800..=0xdbff, Some(low @ 0xdc00..=0xdfff)) => {
            char::from_u32(0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00)).map(|c| (c, &rest[6..]))
        }
        _ => char::from_u32(code).map(|c| (c, rest)),
    }
}

/// What an escape stands for, without its backslash, and where the text goes on.
fn unescaped(text: &str) -> Result<(String, &str), Error> {
    let Some(kind) = text.chars().next() else { return Ok(("\\".into(), text)) };
    let rest = &text[kind.len_utf8()..];
    let plain = |c: char| Ok((c.to_string(), rest));
    let octal = text.bytes().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
    let digits = match kind {
        '\n' => return Ok((String::new(), rest)),
        '\\' | '\'' | '"' => return plain(kind),
        'a' => return plain('\x07'),
        'b' => return plain('\x08'),
        'f' => return plain('\x0c'),
        'n' => return plain('\n'),
        'r' => return plain('\r'),
        't' => return plain('\t'),
        'v' => return plain('\x0b'),
        'N' => return Err(invalid("a string with \\N, which is not supported")),
        'x' => coded(rest, 2, 16),
        'u' => coded(rest, 4, 16),
        'U' => coded(rest, 8, 16),
        '0'..='7' => coded(text, octal, 8),
        // Any other backslash is one.
        _ => return Ok((format!("\\{kind}"), rest)),
    };
    let (c, rest) = digits.ok_or_else(|| invalid(format!("a string with a broken \\{kind}")))?;
    Ok((c.to_string(), rest))
}

/// The string with escapes for backslashes and quotes alone.
fn plain_string(text: &str) -> Result<String, Error> {
    let quote = &text[..1];
    let mut rest = text[1..].strip_suffix(quote).unwrap_or(&text[1..]);
    let mut content = String::new();
    while let Some(at) = rest.find('\\') {
        content.push_str(&rest[..at]);
        let (meant, tail) = unescaped(&rest[at + 1..])?;
        content.push_str(&meant);
        rest = tail;
    }
    content.push_str(rest);
    Ok(format!("{quote}{}{quote}", content.replace('\\', "\\\\").replace(quote, &format!("\\{quote}"))))
}

fn plain_strings(tag: &str) -> Result<String, Error> {
    let mut out = String::new();
    let mut rest = tag;
    while let Some(at) = rest.find(['"', '\'']) {
        let length = string_length(&rest[at..]);
        out.push_str(&rest[..at]);
        let string = &rest[at..at + length];
        out.push_str(&if string.contains('\\') { plain_string(string)? } else { string.to_owned() });
        rest = &rest[at + length..];
    }
    Ok(out + rest)
}

pub fn rewrite(source: &str) -> Result<String, Error> {
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let mut out = String::with_capacity(source.len());
    let mut rest = source.as_str();
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let mut length = match rest.as_bytes().get(1) {
            Some(b'#') => rest.find("#}").map_or(rest.len(), |at| at + 2),
            Some(b'{' | b'%') => tag_length(rest),
            _ => 1,
        };
        let word = rest[..length].trim_matches(|c: char| "{%-+}".contains(c) || c.is_whitespace());
        let is_block = rest.starts_with("{%");
        if is_block && word == "raw" {
            out.push_str(&rest[..length]);
            // The engine drops a line end here, jinja2 keeps it.
            out.push_str(if rest[length..].starts_with('\n') && !rest[..length].ends_with("-%}") { "\n" } else { "" });
            let end = END_RAW.find(rest).map_or(rest.len(), |found| found.end());
            out.push_str(&rest[length..end]);
            length = end;
        } else if is_block && word == "generation" {
            out.push_str(&rest[..length].replace("generation", "with"));
        } else if is_block && word == "endgeneration" {
            out.push_str(&rest[..length].replace("endgeneration", "endwith"));
        } else if rest.starts_with("{#") {
            out.push_str(&rest[..length]);
        } else {
            out.push_str(&plain_strings(&rest[..length])?);
        }
        rest = &rest[length..];
    }
    Ok(out + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_read_differently_changes() {
        let cases = [
            ("a\r\nb\rc{%- generation +%}d{%\nendgeneration %}", "a\nb\nc{%- with +%}d{%\nendwith %}"),
            ("{{ '{% generation %}' }}{# {% generation %} #}", "{{ '{% generation %}' }}{# {% generation %} #}"),
            ("{%- raw -%}{% generation %}'\\/'{% endraw %}", "{%- raw -%}{% generation %}'\\/'{% endraw %}"),
            ("{{ {'a': {}} ~ '\\/' }} '\\/'", "{{ {'a': {}} ~ '\\\\/' }} '\\/'"),
            ("{% set x = \"\\x41\\101\\u0041\\U0001f600\\ud83d\\ude00\" %}", "{% set x = \"AAA😀😀\" %}"),
            ("{{ 'it\\'s \\\"\\\\\\n\\\n' }}", "{{ 'it\\'s \"\\\\\n' }}"),
            ("{{ 'open {% generation %}", "{{ 'open {% generation %}"),
            ("{# it's {{ #}{% generation %}", "{# it's {{ #}{% with %}"),
        ];
        for (source, expected) in cases {
            assert_eq!(rewrite(source).ok().as_deref(), Some(expected), "{source}");
        }
        for source in ["{{ '\\N{BULLET}' }}", "{{ '\\x4' }}", "{{ '\\ud83d' }}"] {
            assert!(rewrite(source).is_err(), "{source}");
        }
    }
}
