// SPDX-License-Identifier: Apache-2.0
//! The `tokenizers` engine over one tokenizer.json. Immutable, so it may be used from many threads.

use crate::added_tokens;
use crate::ffi::{borrow, borrow_text, guard, SakerRsBytes, SakerRsIds};
use std::sync::Arc;
use tokenizers::Tokenizer;

pub struct SakerRsTokenizer {
    pub(crate) engine: Arc<Tokenizer>,
    moved: String,
}

/// Truncation and padding are left from training: like transformers, which sets both for each call,
/// we encode whole texts and nothing else.
fn load(json: &[u8], other_files: &[u8]) -> Result<SakerRsTokenizer, String> {
    let (mut engine, moved) = added_tokens::load(json, other_files)?;
    engine.with_truncation(None).map_err(|e| e.to_string())?;
    engine.with_padding(None);
    Ok(SakerRsTokenizer { engine: Arc::new(engine), moved })
}

/// # Safety
/// Pointers are valid for their sizes; `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_tokenizer_new(
    json: *const u8,
    size: usize,
    other_files: *const u8,
    other_size: usize,
    out: *mut *mut SakerRsTokenizer,
    error: *mut SakerRsBytes,
) -> bool {
    guard(error, || {
        let tokenizer = load(borrow(json, size), borrow(other_files, other_size))?;
        out.write(Box::into_raw(Box::new(tokenizer)));
        Ok(())
    })
}

/// # Safety
/// `tokenizer` came from `saker_rs_tokenizer_new` and was not freed before.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_tokenizer_free(tokenizer: *mut SakerRsTokenizer) {
    if !tokenizer.is_null() {
        drop(Box::from_raw(tokenizer));
    }
}

/// # Safety
/// Pointers are valid for their sizes; `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_tokenizer_encode(
    tokenizer: *const SakerRsTokenizer,
    text: *const u8,
    size: usize,
    add_special_tokens: bool,
    out: *mut SakerRsIds,
    error: *mut SakerRsBytes,
) -> bool {
    guard(error, || {
        let text = borrow_text(text, size)?;
        let encoding = (*tokenizer).engine.encode_fast(text, add_special_tokens);
        out.write(encoding.map_err(|e| e.to_string())?.get_ids().to_vec().into());
        Ok(())
    })
}

/// # Safety
/// Pointers are valid for their sizes; `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_tokenizer_decode(
    tokenizer: *const SakerRsTokenizer,
    ids: *const u32,
    size: usize,
    skip_special_tokens: bool,
    out: *mut SakerRsBytes,
    error: *mut SakerRsBytes,
) -> bool {
    guard(error, || {
        let text = (*tokenizer).engine.decode(borrow(ids, size), skip_special_tokens);
        out.write(text.map_err(|e| e.to_string())?.into_bytes().into());
        Ok(())
    })
}

/// # Safety
/// `tokenizer` is alive.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_tokenizer_vocab_size(tokenizer: *const SakerRsTokenizer) -> usize {
    (*tokenizer).engine.get_vocab_size(true)
}

/// # Safety
/// Pointers are valid for their sizes; `out` is writable.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_tokenizer_token_id(
    tokenizer: *const SakerRsTokenizer,
    text: *const u8,
    size: usize,
    out: *mut u32,
) -> bool {
    let id = borrow_text(text, size).ok().and_then(|text| (*tokenizer).engine.token_to_id(text));
    id.map(|id| out.write(id)).is_some()
}

/// # Safety
/// `tokenizer` is alive; `out` is writable.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_tokenizer_piece(
    tokenizer: *const SakerRsTokenizer,
    id: u32,
    out: *mut SakerRsBytes,
) -> bool {
    let piece = (*tokenizer).engine.id_to_token(id);
    piece.map(|piece| out.write(piece.into_bytes().into())).is_some()
}

/// # Safety
/// `tokenizer` is alive; `out` is writable.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_tokenizer_moved(tokenizer: *const SakerRsTokenizer, out: *mut SakerRsBytes) {
    out.write((*tokenizer).moved.clone().into_bytes().into());
}

/// # Safety
/// `tokenizer` is alive.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_tokenizer_is_special(tokenizer: *const SakerRsTokenizer, id: u32) -> bool {
    let added = (*tokenizer).engine.get_added_vocabulary().get_added_tokens_decoder();
    added.get(&id).is_some_and(|token| token.special)
}
