// SPDX-License-Identifier: Apache-2.0
//! A text in which some parts stand for tokens. Elsewhere names of tokens are text, even those of added tokens: only the
//! program writes a prompt's tokens, and its user's texts may have such names.

use crate::bounded::Result;
use tokenizers::tokenizer::normalizer::Range;
use tokenizers::{Model, NormalizedString, Normalizer, OffsetType, PreTokenizedString};
use tokenizers::{PreTokenizer, Token, Tokenizer};

/// Bytes `begin` to `end` of the text stand for the token `id`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SakerRsMark {
    pub begin: usize,
    pub end: usize,
    pub id: u32,
}

/// The ids of a text with marks, which are ascending and apart.
pub fn encode(tokenizer: &Tokenizer, text: &str, marks: &[SakerRsMark], add_special_tokens: bool) -> Result<Vec<u32>> {
    let ids = || -> tokenizers::Result<Vec<u32>> {
        let mut parts = PreTokenizedString::from(text);
        parts.split(|_, whole| cut(&whole, text.len(), marks))?;
        if let Some(normalizer) = tokenizer.get_normalizer() {
            parts.normalize(|part| normalizer.normalize(part))?;
        }
        if let Some(pre_tokenizer) = tokenizer.get_pre_tokenizer() {
            pre_tokenizer.pre_tokenize(&mut parts)?;
        }
        parts.tokenize(|part| tokenizer.get_model().tokenize(part.get()))?;
        let encoding = parts.into_encoding(None, 0, OffsetType::Byte)?;
        Ok(tokenizer.post_process(encoding, None, add_special_tokens)?.get_ids().to_vec())
    };
    Ok(ids().map_err(|e| e.to_string())?)
}

type Part = (NormalizedString, Option<Vec<Token>>);

fn cut(whole: &NormalizedString, size: usize, marks: &[SakerRsMark]) -> tokenizers::Result<Vec<Part>> {
    let slice = |begin, end| whole.slice(Range::Original(begin..end)).ok_or("a mark is no part of the text");
    let mut parts = Vec::with_capacity(2 * marks.len() + 1);
    let mut at = 0;
    for &SakerRsMark { begin, end, id } in marks {
        if at < begin {
            parts.push((slice(at, begin)?, None));
        }
        let token = Token::new(id, String::new(), (0, end - begin));
        parts.push((slice(begin, end)?, Some(vec![token])));
        at = end;
    }
    if at < size {
        parts.push((slice(at, size)?, None));
    }
    Ok(parts)
}
