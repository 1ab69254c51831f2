// SPDX-License-Identifier: Apache-2.0
//! Finds out if a tokenizer is calm: its steps allocate as they go, or are linear in their input, so they stop soon
//! after an allocation fails. Other tokenizers may search for hours within the memory that they have. Reasons are
//! unknown regular expressions, and pieces and words so long that each place of a text reads much of the rest.

use crate::bounded::Result;
use crate::words::is_known;
use serde_json::Value;
use tokenizers::models::ModelWrapper;
use tokenizers::Tokenizer;

/// Maximum bytes of a searched text, which may be compared at each place.
const MAX_SEARCHED: usize = 256;
/// Maximum bytes of a piece of a Unigram vocabulary; below, characters of a word for WordPiece.
const MAX_PIECE: usize = 256;
const MAX_WORD: usize = 1024;

pub struct Calm {
    pub encodes: bool,
    pub decodes: bool,
}

impl Calm {
    pub fn of(tokenizer: &Tokenizer, longest_piece: usize) -> Result<Calm> {
        let value = |step: serde_json::Result<Value>| -> Result<Value> { Ok(step.map_err(|e| e.to_string())?) };
        let normalizer = value(serde_json::to_value(tokenizer.get_normalizer()))?;
        let pre_tokenizer = value(serde_json::to_value(tokenizer.get_pre_tokenizer()))?;
        let decoder = value(serde_json::to_value(tokenizer.get_decoder()))?;
        let model = match tokenizer.get_model() {
            ModelWrapper::Unigram(_) => longest_piece <= MAX_PIECE,
            ModelWrapper::WordPiece(model) => model.max_input_chars_per_word <= MAX_WORD,
            ModelWrapper::BPE(_) | ModelWrapper::WordLevel(_) => true,
        };
        Ok(Calm { encodes: model && is_calm(&normalizer) && is_calm(&pre_tokenizer), decodes: is_calm(&decoder) })
    }
}

/// Checks a step in the file's form, and the steps inside it.
fn is_calm(step: &Value) -> bool {
    let own = match step.get("pattern") {
        Some(Value::Object(pattern)) => pattern.iter().all(|(kind, text)| {
            let text = text.as_str().unwrap_or("");
            if kind == "Regex" {
                is_known(text)
            } else {
                text.len() <= MAX_SEARCHED
            }
        }),
        _ => true,
    };
    let below = ["normalizers", "pretokenizers", "decoders"].iter().filter_map(|key| step.get(key)?.as_array());
    own && below.flatten().all(is_calm)
}
