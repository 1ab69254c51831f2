// SPDX-License-Identifier: Apache-2.0
//! Encodes long texts in pieces, on several threads. The engine needs up to 220 bytes of memory per byte of text in
//! work, and encodes 2 MB of text per second.

use crate::bounded::{here, Failure, Result};
use crate::cuts::Cuts;
use crate::memory::Bounds;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokenizers::{Encoding, Token, Tokenizer};

/// Approximate bytes of one piece.
const PIECE: usize = 1 << 17;
/// Shorter texts are a single piece (saker/text/tokenizer.h: kWholeTextBytes).
const WHOLE: usize = 2 * PIECE;
const MAX_THREADS: usize = 8;
const STACK: usize = 1 << 20;

/// Ids that the post-processor adds before and after a text; none if it does more than that.
fn around(tokenizer: &Tokenizer) -> Option<(Vec<u32>, Vec<u32>)> {
    const TEXT: u32 = u32::MAX;
    let encoding = Encoding::from_tokens(vec![Token::new(TEXT, String::new(), (0, 0))], 0);
    let processed = tokenizer.post_process(encoding, None, true).ok()?;
    let ids = processed.get_ids();
    let mut places = ids.iter().enumerate().filter(|(_, id)| **id == TEXT).map(|(at, _)| at);
    let at = places.next()?;
    places.next().is_none().then(|| (ids[..at].to_vec(), ids[at + 1..].to_vec()))
}

fn encode_piece(tokenizer: &Tokenizer, text: &str, add_special_tokens: bool) -> Result<Vec<u32>> {
    let encoding = tokenizer.encode_fast(text, add_special_tokens).map_err(|e| e.to_string())?;
    Ok(encoding.get_ids().to_vec())
}

/// A text to encode, and the options.
pub struct Order<'a> {
    pub text: &'a str,
    pub add_special_tokens: bool,
    /// Once there are more ids than this, the rest may be left out.
    pub most: usize,
    /// Bounds of each thread.
    pub bounds: Bounds,
    /// True if further threads may help: only failed allocations can stop them.
    pub is_shared: bool,
}

/// The ids of a text.
pub fn encode<'a>(tokenizer: &Tokenizer, cuts: impl FnOnce() -> Option<&'a Cuts>, order: &Order) -> Result<Vec<u32>> {
    let known = if order.text.len() > WHOLE { cuts().zip(around(tokenizer)) } else { None };
    let Some((cuts, (before, behind))) = known else {
        return encode_piece(tokenizer, order.text, order.add_special_tokens);
    };
    let pieces = encode_pieces(tokenizer, cuts, order, PIECE)?;
    let (before, behind) = if order.add_special_tokens { (before, behind) } else { Default::default() };
    let count = pieces.iter().map(Vec::len).sum::<usize>() + before.len() + behind.len();
    let mut ids = Vec::with_capacity(count);
    ids.extend(before);
    // Frees each piece once it is copied.
    pieces.into_iter().for_each(|piece| ids.extend(piece));
    ids.extend(behind);
    Ok(ids)
}

/// State that the threads share: the text from which they take pieces in order, and the ids of the pieces.
struct Work<'a> {
    rest: &'a str,
    pieces: Vec<Vec<u32>>,
    count: usize,
    failure: Option<Failure>,
}

struct Shared<'a>(Mutex<Work<'a>>);

impl<'a> Shared<'a> {
    fn lock(&self) -> MutexGuard<'_, Work<'a>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next piece and its number.
    fn take(&self, cuts: &Cuts, size: usize, most: usize) -> Option<(usize, &'a str)> {
        let mut work = self.lock();
        if work.rest.is_empty() || work.count > most {
            return None;
        }
        let (piece, rest) = cuts.split(work.rest, size);
        work.pieces.push(Vec::new());
        work.rest = rest;
        Some((work.pieces.len() - 1, piece))
    }

    fn put(&self, number: usize, ids: Vec<u32>) {
        let mut work = self.lock();
        work.count += ids.len();
        work.pieces[number] = ids;
    }
}

/// Ends the other threads' work if one fails in any way.
struct Ends<'a, 'b>(&'a Shared<'b>);

impl Drop for Ends<'_, '_> {
    fn drop(&mut self) {
        self.0.lock().rest = "";
    }
}

fn encode_pieces(tokenizer: &Tokenizer, cuts: &Cuts, order: &Order, size: usize) -> Result<Vec<Vec<u32>>> {
    let work = Work { rest: order.text, pieces: Vec::new(), count: 0, failure: None };
    let shared = Shared(Mutex::new(work));
    let run = || -> Result<()> {
        let _ends = Ends(&shared);
        while let Some((number, piece)) = shared.take(cuts, size, order.most) {
            shared.put(number, encode_piece(tokenizer, piece, false)?);
        }
        Ok(())
    };
    let help = || {
        if let Err(failure) = here(order.bounds, run) {
            shared.lock().failure = Some(failure);
        }
    };
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get().min(MAX_THREADS));
    let threads = if order.is_shared { processors.min(order.text.len() / size).max(1) } else { 1 };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // If a thread can't start, the others do its part.
            let _ = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, help);
        }
        run()
    })?;
    let work = shared.0.into_inner().unwrap_or_else(PoisonError::into_inner);
    work.failure.map_or(Ok(work.pieces), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};

    const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
    const LLAMA3: &str = concat!(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|",
        r"\s*[\r\n]+|\s+(?!\S)|\s+"
    );

    fn tokenizer(normalizer: Value, pre_tokenizer: Value, model: Value, added: Value) -> Tokenizer {
        let file = json!({
            "version": "1.0", "added_tokens": added, "normalizer": normalizer, "pre_tokenizer": pre_tokenizer,
            "model": model, "decoder": null,
            "post_processor": {"type": "TemplateProcessing", "single": [
                {"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": "<s>", "type_id": 0}}], "pair": [],
                "special_tokens": {"<s>": {"id": "<s>", "ids": [7, 8], "tokens": ["<s>", "</s>"]}}}
        });
        Tokenizer::from_bytes(file.to_string()).unwrap()
    }

    fn special(id: u32, content: &str, flags: &[&str]) -> Value {
        let mut token = json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true});
        flags.iter().for_each(|flag| token[*flag] = json!(true));
        token
    }

    /// A vocabulary of all characters and of these merges; spaces are written as `space`.
    fn bpe(space: &str, merges: &[(&str, &str)]) -> Value {
        let mut pieces: Vec<String> = ('!'..='~').map(String::from).collect();
        pieces.extend(["<unk>", space, "\u{2581}", "\u{120}", "\u{10a}"].map(String::from));
        pieces.extend("äöé中文字，。".chars().map(String::from));
        pieces.extend(('\u{a1}'..='\u{17f}').map(String::from));
        pieces.extend(merges.iter().map(|(a, b)| format!("{a}{b}")));
        pieces.dedup();
        let mut vocabulary = serde_json::Map::new();
        for piece in pieces {
            let id = vocabulary.len();
            vocabulary.entry(piece).or_insert(json!(id + 10));
        }
        json!({"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "vocab": vocabulary, "merges": merges})
    }

    fn texts() -> Vec<String> {
        const PARTS: [&str; 24] = [
            "a",
            "ab",
            "the cat",
            " ",
            "  ",
            "\n",
            "\n\n",
            "don't",
            "12345",
            "x1",
            "中文",
            "，",
            "。\n",
            "é",
            "e\u{301}",
            "<b>",
            "<x>",
            ".",
            "...",
            "\t",
            "hello world",
            "\u{2581}",
            "\r\n",
            "\u{1f600}",
        ];
        let mut state = 1u64;
        let mut next = |most: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % most
        };
        (0..100)
            .map(|_| {
                let count = next(40);
                (0..count).map(|_| PARTS[next(PARTS.len())].to_owned() + ["", " ", " "][next(3)]).collect()
            })
            .collect()
    }

    fn order(text: &str, most: usize) -> Order<'_> {
        let bounds = Bounds { bytes: 1 << 28, time: std::time::Duration::from_secs(60) };
        // Some with further threads, which usually do not pay for such short texts.
        let is_shared = text.len() % 8 == 0;
        Order { text, add_special_tokens: false, most, bounds, is_shared }
    }

    fn check(tokenizer: &Tokenizer) -> usize {
        let cuts = Cuts::of(tokenizer).expect("texts may be cut");
        let mut pieces = 0;
        for text in texts() {
            let whole = encode_piece(tokenizer, &text, true).unwrap();
            let (before, behind) = around(tokenizer).unwrap();
            let parts = encode_pieces(tokenizer, &cuts, &order(&text, usize::MAX), 2).unwrap().concat();
            assert_eq!([before, parts, behind].concat(), whole, "{text:?}");
            let mut rest = text.as_str();
            while !rest.is_empty() {
                rest = cuts.split(rest, 2).1;
                pieces += 1;
            }
        }
        pieces
    }

    #[test]
    fn pieces_have_the_ids_of_the_whole() {
        let bytes = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
        let after = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
        let split = |regex: &str| json!({"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": false});
        let added = || json!([special(0, "<b>", &["rstrip", "lstrip"]), special(1, "<x>", &["single_word"])]);
        let merges = [("a", "b"), ("t", "h"), ("th", "e"), ("Ġ", "a"), ("Ġ", "the"), ("l", "l"), ("Ċ", "Ċ")];
        let model = bpe("Ġ", &merges);
        let tokenizers = [
            tokenizer(Value::Null, bytes, model.clone(), added()),
            tokenizer(
                json!({"type": "NFC"}),
                json!({"type": "Sequence", "pretokenizers": [split(LLAMA3), after]}),
                model.clone(),
                added(),
            ),
            tokenizer(
                Value::Null,
                json!({"type": "Sequence", "pretokenizers": [split(r"\p{N}{1,3}"), split(GPT2), after]}),
                model,
                added(),
            ),
        ];
        assert!(tokenizers.iter().all(|tokenizer| check(tokenizer) > 200));
    }

    #[test]
    fn pieces_of_sentencepiece_have_the_ids_of_the_whole() {
        let replace = json!({"type": "Replace", "pattern": {"String": " "}, "content": "\u{2581}"});
        let prepend = json!({"type": "Prepend", "prepend": "\u{2581}"});
        let both = json!({"type": "Sequence", "normalizers": [prepend, replace]});
        let metaspace =
            |split| json!({"type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "first", "split": split});
        let added = || json!([special(0, "<b>", &[]), special(1, "<x>", &["normalized"])]);
        let merges =
            [("a", "b"), ("\u{2581}", "\u{2581}"), ("\u{2581}", "a"), ("t", "h"), ("\u{2581}", "th"), ("l", "l")];
        let model = bpe("\u{2581}", &merges);
        let vocabulary: Vec<Value> = model["vocab"].as_object().unwrap().keys().map(|key| json!([key, -1.5])).collect();
        let unigram = json!({"type": "Unigram", "unk_id": 0, "vocab": vocabulary});
        let tokenizers = [
            tokenizer(both, Value::Null, model.clone(), added()),
            tokenizer(replace.clone(), Value::Null, model.clone(), added()),
            tokenizer(Value::Null, metaspace(false), model, added()),
            tokenizer(Value::Null, metaspace(true), unigram, added()),
        ];
        assert!(tokenizers.iter().all(|tokenizer| check(tokenizer) > 200));
    }

    #[test]
    fn what_looks_across_cuts_is_not_cut() {
        let bytes = || json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
        let replace = || json!({"type": "Replace", "pattern": {"String": " "}, "content": "\u{2581}"});
        let plain = bpe("Ġ", &[]);
        let across = bpe("\u{2581}", &[("a", "\u{2581}")]);
        let regex = json!({"type": "Split", "pattern": {"Regex": "a b"}, "behavior": "Isolated", "invert": false});
        let none = || json!([]);
        for tokenizer in [
            tokenizer(Value::Null, Value::Null, plain.clone(), none()),
            tokenizer(Value::Null, regex, plain.clone(), none()),
            tokenizer(
                json!({"type": "Strip", "strip_left": true, "strip_right": true}),
                bytes(),
                plain.clone(),
                none(),
            ),
            tokenizer(replace(), Value::Null, across, none()),
            tokenizer(Value::Null, bytes(), plain.clone(), json!([special(0, "a b", &[])])),
            tokenizer(Value::Null, bytes(), plain.clone(), json!([special(0, "ab", &["rstrip"])])),
            tokenizer(Value::Null, bytes(), plain, json!([special(0, " a", &["single_word"])])),
        ] {
            assert!(Cuts::of(&tokenizer).is_none());
        }
    }

    #[test]
    fn too_many_ids_end_it() {
        let bytes = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
        let tokenizer = tokenizer(Value::Null, bytes, bpe("Ġ", &[]), json!([]));
        let cuts = Cuts::of(&tokenizer).unwrap();
        let text = "ab ".repeat(1000);
        let ids = encode_pieces(&tokenizer, &cuts, &order(&text, 20), 8).unwrap().concat();
        assert!(ids.len() > 20 && ids.len() < 200, "{}", ids.len());
    }
}
