// SPDX-License-Identifier: Apache-2.0
//! Places where texts may be cut: no step of the tokenizer looks across them, so the pieces have the ids of the whole
//! (docs/adr/0041-long-texts-in-pieces.md).

use crate::words::{is_known, takes_all};
use serde_json::Value;
use tokenizers::models::ModelWrapper;
use tokenizers::{AddedToken, Tokenizer};

/// SentencePiece's space.
const META: char = '\u{2581}';

/// The places where a tokenizer's texts may be cut: before a space between letters or digits.
pub struct Cuts {
    /// The normalizer writes a space before each text, so the space at the cut is dropped.
    drops_space: bool,
    /// Also before punctuation and line breaks after a Chinese character: such texts may have no spaces.
    at_marks: bool,
}

/// The form of a space after the steps so far.
#[derive(PartialEq)]
enum Space {
    Plain,
    Meta,
    Byte,
}

fn steps<'a>(step: &'a Value, key: &str) -> Vec<&'a Value> {
    match step.get(key).and_then(Value::as_array) {
        Some(inner) => inner.iter().flat_map(|step| steps(step, key)).collect(),
        None if step.is_null() => Vec::new(),
        None => vec![step],
    }
}

fn text<'a>(step: &'a Value, key: &str) -> &'a str {
    step.get(key).and_then(Value::as_str).unwrap_or("")
}

fn flag(step: &Value, key: &str) -> bool {
    step.get(key).and_then(Value::as_bool).unwrap_or(true)
}

fn pattern<'a>(step: &'a Value, kind: &str) -> Option<&'a str> {
    step.get("pattern")?.get(kind)?.as_str()
}

/// The form of a space, and true if each text gets one in front; none for unknown steps.
fn normalized(normalizer: &Value) -> Option<(Space, bool)> {
    let (mut space, mut prepends) = (Space::Plain, false);
    for step in steps(normalizer, "normalizers") {
        match text(step, "type") {
            "NFC" | "NFD" | "NFKC" | "NFKD" if space == Space::Plain => {}
            "Prepend" if text(step, "prepend") == "\u{2581}" && !prepends && space == Space::Plain => prepends = true,
            "Replace" if pattern(step, "String") == Some(" ") && text(step, "content") == "\u{2581}" => {
                space = Space::Meta;
            }
            _ => return None,
        }
    }
    (!prepends || space == Space::Meta).then_some((space, prepends))
}

/// The relation of a text's words to its cuts.
struct Words {
    space: Space,
    /// Each cut lies between two words.
    apart: bool,
    at_marks: bool,
}

fn pre_tokenized(pre_tokenizer: &Value, space: Space, prepends: bool) -> Option<Words> {
    let mut words = Words { space, apart: false, at_marks: false };
    let mut may_be_at_marks = true;
    for step in steps(pre_tokenizer, "pretokenizers") {
        let is_plain = words.space == Space::Plain;
        match text(step, "type") {
            "ByteLevel" if is_plain => {
                may_be_at_marks &= !flag(step, "add_prefix_space");
                words.apart |= flag(step, "use_regex");
                words.at_marks |= flag(step, "use_regex");
                words.space = Space::Byte;
            }
            "Metaspace" if is_plain && !prepends && text(step, "replacement") == "\u{2581}" => {
                may_be_at_marks = false;
                words.apart |= flag(step, "split");
                words.space = Space::Meta;
            }
            "Split" if text(step, "behavior") == "Isolated" && !flag(step, "invert") => {
                let regex = pattern(step, "Regex").filter(|regex| is_plain && is_known(regex))?;
                words.apart |= takes_all(regex);
                words.at_marks |= takes_all(regex);
            }
            // No spaces are left for it to split.
            "Split" if words.space == Space::Meta && pattern(step, "String") == Some(" ") => {}
            "Digits" | "Punctuation" => {}
            "WhitespaceSplit" | "Whitespace" | "BertPreTokenizer" if is_plain => words.apart = true,
            _ => return None,
        }
    }
    words.at_marks &= may_be_at_marks;
    Some(words)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric()
}

fn is_ideograph(c: char) -> bool {
    ('\u{4e00}'..='\u{9fff}').contains(&c)
}

/// True if a character that `first` accepts precedes one that `second` accepts.
fn has_pair(text: &str, first: impl Fn(char) -> bool, second: impl Fn(char) -> bool) -> bool {
    text.chars().zip(text.chars().skip(1)).any(|(a, b)| first(a) && second(b))
}

/// True if a model without pre-tokenization merges nothing across a cut.
fn merges_within(model: &ModelWrapper) -> bool {
    let ModelWrapper::BPE(bpe) = model else { return false };
    let vocabulary = bpe.get_vocab();
    let is_known = |c: char| vocabulary.contains_key(c.to_string().as_str());
    !bpe.ignore_merges
        && bpe.get_continuing_subword_prefix().is_none()
        && bpe.end_of_word_suffix.is_none()
        && is_known(META)
        && ('0'..='z').filter(|c| is_word(*c)).all(is_known)
        && !vocabulary.keys().any(|piece| has_pair(piece, is_word, |c| c == META))
}

/// True if a token's text is found in the pieces exactly where it is found in the whole.
fn is_found_within(token: &AddedToken, space: &Space, drops_space: bool) -> bool {
    let is_space = |c: char| c == ' ' || (c == META && *space == Space::Meta && token.normalized);
    let (first, last) = (token.content.chars().next(), token.content.chars().last());
    !has_pair(&token.content, is_word, is_space)
        && !(token.rstrip && last.is_some_and(is_word))
        && !(token.single_word && first.is_some_and(is_space))
        && !(drops_space && first.is_some_and(|c| is_word(c) || is_space(c)))
}

impl Cuts {
    /// None: this tokenizer's texts are encoded whole.
    pub fn of(tokenizer: &Tokenizer) -> Option<Cuts> {
        let model = tokenizer.get_model();
        if matches!(model, ModelWrapper::BPE(bpe) if bpe.dropout.is_some_and(|p| p > 0.0)) {
            return None;
        }
        let (space, drops_space) = normalized(&serde_json::to_value(tokenizer.get_normalizer()).ok()?)?;
        let is_meta = space == Space::Meta;
        let words = pre_tokenized(&serde_json::to_value(tokenizer.get_pre_tokenizer()).ok()?, space, drops_space)?;
        let added = tokenizer.get_added_vocabulary().get_added_tokens_decoder();
        let seen = if is_meta { Space::Meta } else { Space::Plain };
        if !added.values().all(|token| is_found_within(token, &seen, drops_space)) {
            return None;
        }
        if !words.apart && !(words.space == Space::Meta && merges_within(model)) {
            return None;
        }
        let at_marks = words.at_marks && !added.values().any(|token| token.content.contains(is_ideograph));
        Some(Cuts { drops_space, at_marks })
    }

    fn is_cut(&self, text: &str, at: usize) -> bool {
        let bytes = text.as_bytes();
        match bytes[at] {
            b' ' => bytes[at - 1].is_ascii_alphanumeric() && bytes.get(at + 1).is_some_and(u8::is_ascii_alphanumeric),
            b'\n' | 0xe3 | 0xef if self.at_marks && text.is_char_boundary(at) => {
                let next = text[at..].chars().next();
                next.is_some_and(|c| "\n\u{3001}\u{3002}\u{ff0c}".contains(c))
                    && text[..at].chars().next_back().is_some_and(is_ideograph)
            }
            _ => false,
        }
    }

    /// Splits off the first piece, of about `size` bytes.
    pub fn split<'a>(&self, text: &'a str, size: usize) -> (&'a str, &'a str) {
        match (size..text.len()).find(|at| self.is_cut(text, *at)) {
            Some(at) => (&text[..at], &text[at + usize::from(self.drops_space)..]),
            None => (text, ""),
        }
    }
}
