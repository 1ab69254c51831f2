// SPDX-License-Identifier: Apache-2.0
//! The regular expressions with which published tokenizers split text into words, as lists of alternatives.
//!
//! Each alternative, and so each expression made of them, has these properties. It takes time linear in the text that
//! it looks at, and looks at nothing before its match. No match holds a space (U+0020) after a character that is not a
//! space. Only one alternative looks at the text after a match: whether spaces end there
//! (docs/adr/0041-long-texts-in-pieces.md).

const ALTERNATIVES: &[&str] = &[
    // GPT-2.
    "'s",
    "'t",
    "'re",
    "'ve",
    "'m",
    "'ll",
    "'d",
    r" ?\p{L}+",
    r" ?\p{N}+",
    r" ?[^\s\p{L}\p{N}]+",
    r"\s+(?!\S)",
    r"\s+",
    // Llama 3, Qwen 2 to 3.5, GLM 4.
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)",
    r"[^\r\n\p{L}\p{N}]?\p{L}+",
    r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+",
    r"\p{N}",
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*",
    r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*",
    r"\s*[\r\n]+",
    // Words with capitals: o200k, Mistral, MiniMax.
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
    // DeepSeek V3.
    r"[一-龥぀-ゟ゠-ヿ]+",
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"##,
    r"[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+",
    r" ?[\p{P}\p{S}]+[\r\n]*",
];

/// The alternatives of an expression: the parts between its outermost bars.
fn alternatives(pattern: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut begin, mut depth, mut in_set, mut escaped) = (0, 0usize, false, false);
    for (at, c) in pattern.char_indices() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match c {
            '\\' => escaped = true,
            '[' if !in_set => in_set = true,
            ']' if in_set => in_set = false,
            '(' if !in_set => depth += 1,
            ')' if !in_set => depth = depth.saturating_sub(1),
            '|' if !in_set && depth == 0 => {
                parts.push(&pattern[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&pattern[begin..]);
    parts
}

/// True if an expression consists of known alternatives only.
pub fn is_known(pattern: &str) -> bool {
    pattern.len() <= 4096 && alternatives(pattern).iter().all(|part| ALTERNATIVES.contains(part))
}

/// True if a known expression leaves no text between its matches.
pub fn takes_all(pattern: &str) -> bool {
    alternatives(pattern).contains(&r"\s+")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_expressions_are_known() {
        let published = [
            r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ];
        assert!(published.iter().all(|pattern| is_known(pattern)));
        for other in [r"(?:a|b|ab)*c", r"\s+|(a+)+", r"\s+|", "", r"[|]", r"\|"] {
            assert!(!is_known(other), "{other}");
        }
    }
}
