// SPDX-License-Identifier: Apache-2.0
//! The bytes that each token of a vocabulary adds to a text, for masks of tokens. Special tokens are marked, since their
//! texts are names, not text.

use crate::bounded::Result;
use crate::detokenizer::{byte_of, flatten, is_byte_token};
use tokenizers::decoders::DecoderWrapper;
use tokenizers::{Decoder, Tokenizer};
use toktrie::TokTrie;

/// Precedes each token in the decoder, so that steps which treat the first token differently leave it alone.
const BEFORE: &str = "a";

/// How a vocabulary writes bytes.
struct Writing<'a> {
    decoder: Option<&'a DecoderWrapper>,
    is_byte_level: bool,
    has_byte_tokens: bool,
}

impl<'a> Writing<'a> {
    fn of(tokenizer: &'a Tokenizer) -> Writing<'a> {
        let mut steps = Vec::new();
        let decoder = tokenizer.get_decoder();
        if let Some(decoder) = decoder {
            flatten(decoder, &mut steps);
        }
        Writing {
            decoder,
            is_byte_level: steps.iter().any(|step| matches!(step, DecoderWrapper::ByteLevel(_))),
            has_byte_tokens: steps.iter().any(|step| matches!(step, DecoderWrapper::ByteFallback(_))),
        }
    }

    fn bytes(&self, token: String) -> Result<Vec<u8>> {
        if self.is_byte_level {
            let bytes: Option<Vec<u8>> = token.chars().map(byte_of).collect();
            return Ok(bytes.unwrap_or_else(|| token.into_bytes()));
        }
        if self.has_byte_tokens && is_byte_token(&token) {
            return Ok(vec![u8::from_str_radix(&token[3..5], 16).unwrap_or_default()]);
        }
        let Some(decoder) = self.decoder else { return Ok(token.into_bytes()) };
        let text = decoder.decode_chain(vec![BEFORE.into(), token]).map_err(|e| e.to_string())?.concat();
        Ok(text.strip_prefix(BEFORE).unwrap_or(&text).into())
    }
}

/// What one token adds to a text; a special one as its name is written. An id without a token has no bytes.
pub fn bytes_of(tokenizer: &Tokenizer, id: u32) -> Result<Vec<u8>> {
    let added = tokenizer.get_added_vocabulary().get_added_tokens_decoder().get(&id);
    match (added, tokenizer.id_to_token(id)) {
        (Some(added), _) => Ok(added.content.as_bytes().to_vec()),
        (None, Some(token)) => Writing::of(tokenizer).bytes(token),
        (None, None) => Ok(Vec::new()),
    }
}

/// By id; ids without a token have no bytes.
pub fn token_bytes(tokenizer: &Tokenizer) -> Result<Vec<Vec<u8>>> {
    let writing = Writing::of(tokenizer);
    let added = tokenizer.get_added_tokens_decoder();
    let vocabulary = tokenizer.get_vocab(true);
    let size = vocabulary.values().max().map_or(0, |&id| id as usize + 1);
    let mut all = vec![Vec::new(); size];
    for (token, id) in vocabulary {
        all[id as usize] = match added.get(&id) {
            Some(added) if added.special => [&[TokTrie::SPECIAL_TOKEN_MARKER], added.content.as_bytes()].concat(),
            Some(added) => added.content.as_bytes().to_vec(),
            None => writing.bytes(token)?,
        };
    }
    Ok(all)
}
