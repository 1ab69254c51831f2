// SPDX-License-Identifier: Apache-2.0
//! Escapes in a template's strings, as in Python.

use super::arguments::invalid;
use minijinja::Error;

/// The character of an escape with digits, and the rest of the text.
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

/// The character of `{NAME}`, and the rest of the text.
fn named(text: &str) -> Option<(char, &str)> {
    let (name, rest) = text.strip_prefix('{')?.split_once('}')?;
    unicode_names2::character(name).map(|c| (c, rest))
}

/// The meaning of an escape without its backslash, and the rest of the text.
fn escaped(text: &str) -> Result<(String, &str), Error> {
    let Some(kind) = text.chars().next() else { return Err(invalid("a string that ends in a backslash")) };
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
        'N' => named(rest),
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

/// A string's content, from the text between its quotes.
pub fn unescape(text: &str) -> Result<String, Error> {
    let mut rest = text;
    let mut content = String::new();
    while let Some(at) = rest.find('\\') {
        content.push_str(&rest[..at]);
        let (meant, tail) = escaped(&rest[at + 1..])?;
        content.push_str(&meant);
        rest = tail;
    }
    Ok(content + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_pythons() {
        let cases = [
            (r"\x41\101\u0041\U0001f600\ud83d\ude00", "AAA😀😀"),
            ("it\\'s \\\"\\\\\\n\\\n", "it's \"\\\n"),
            (r"\/\d\N{BULLET}\N{latin small letter e with acute}", "\\/\\d•é"),
        ];
        for (text, meant) in cases {
            assert_eq!(unescape(text).ok().as_deref(), Some(meant), "{text}");
        }
        for text in [r"\N{NO SUCH}", r"\x4", r"\ud83d", r"\N", "\\"] {
            assert!(unescape(text).is_err(), "{text}");
        }
    }
}
