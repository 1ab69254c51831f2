// SPDX-License-Identifier: Apache-2.0
//! The `tokenizers` engine over one tokenizer.json. Immutable; any number of threads may use it.
//!
//! Files come from strangers: loading, encoding and decoding run within bounds (bounded.rs). They run on the caller's
//! thread if all steps of the file allocate as they go, otherwise on a thread of their own (calm.rs).

use crate::added_tokens;
use crate::bounded::{apart, here, Failure, Result};
use crate::c_memory::limit_searches;
use crate::calm::Calm;
use crate::cuts::Cuts;
use crate::ffi::{borrow, borrow_text, free, guard, shield, SakerRsBytes, SakerRsIds};
use crate::marked::{self, SakerRsMark};
use crate::memory::Bounds;
use crate::pieces::{self, Order};
use crate::pieces_scan::longest_piece;
use crate::token_bytes::bytes_of;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once, OnceLock};
use std::time::Duration;
use tokenizers::models::bpe::BPE;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::whitespace::Whitespace;
use tokenizers::{AddedToken, Decoder, PreTokenizedString, PreTokenizer, Tokenizer};

const MB: usize = 1 << 20;
/// The engine recurses over the file's nesting, at most 128 levels.
const STACK: usize = 4 * MB;

/// Time for a short text or a few tokens, which take milliseconds.
const SMALL: Duration = Duration::from_secs(1);

/// On top of a copy of the file and the caller's data. The largest published vocabularies have files of 33 MB; they take
/// 2 s on a busy machine and 14 bytes for each of the file's.
fn load_bounds(size: usize) -> Bounds {
    let time = Duration::from_secs(4) + Duration::from_millis(50) * (size / MB) as u32;
    Bounds { bytes: 384 * MB + 6 * size, time }
}

/// Encoding takes up to 220 bytes per byte of text; a megabyte of text always fits.
fn encode_bounds(size: usize) -> Bounds {
    Bounds { bytes: 256 * MB + 12 * size, time: SMALL + Duration::from_micros(1) * size as u32 }
}

fn decode_bounds(count: usize) -> Bounds {
    Bounds { bytes: 256 * MB + 256 * count, time: SMALL + Duration::from_micros(1) * count as u32 }
}

/// Bounds for one more token of an answer, or for its end.
const STEP_BOUNDS: Bounds = Bounds { bytes: 256 * MB, time: SMALL };

pub struct Engine {
    pub tokenizer: Tokenizer,
    calm: Calm,
    /// Found when the first long text is encoded.
    cuts: OnceLock<Option<Cuts>>,
    /// Some work of this tokenizer never ended; further work would lose more threads.
    lost: AtomicBool,
}

impl Engine {
    /// Runs `body` on a thread of its own, unless work was lost before.
    fn run_apart<T: Send + 'static>(
        self: &Arc<Self>,
        bounds: Bounds,
        body: impl FnOnce(&Engine) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if self.lost.load(Ordering::Relaxed) {
            return Err(Failure::Text("the tokenizer did not come to an end with an earlier input".into()));
        }
        let engine = self.clone();
        let result = apart("tokenizer", STACK, bounds, move || body(&engine));
        if matches!(result, Err(Failure::Lost(_))) {
            self.lost.store(true, Ordering::Relaxed);
        }
        result
    }

    fn encode(self: &Arc<Self>, text: &str, add_special_tokens: bool, most: usize) -> Result<Vec<u32>> {
        let bounds = encode_bounds(text.len());
        let is_shared = self.calm.encodes;
        let encode = move |engine: &Engine, text: &str| {
            let cuts = || engine.cuts.get_or_init(|| Cuts::of(&engine.tokenizer)).as_ref();
            pieces::encode(&engine.tokenizer, cuts, &Order { text, add_special_tokens, most, bounds, is_shared })
        };
        if self.calm.encodes {
            return here(bounds, || encode(self, text));
        }
        let text = text.to_owned();
        self.run_apart(bounds, move |engine| encode(engine, &text))
    }

    fn encode_marked(
        self: &Arc<Self>,
        text: &str,
        marks: &[SakerRsMark],
        add_special_tokens: bool,
    ) -> Result<Vec<u32>> {
        let bounds = encode_bounds(text.len());
        if self.calm.encodes {
            return here(bounds, || marked::encode(&self.tokenizer, text, marks, add_special_tokens));
        }
        let (text, marks) = (text.to_owned(), marks.to_vec());
        self.run_apart(bounds, move |engine| marked::encode(&engine.tokenizer, &text, &marks, add_special_tokens))
    }

    fn encode_pair(self: &Arc<Self>, first: &str, second: &str) -> Result<Pair> {
        let bounds = encode_bounds(first.len() + second.len());
        if self.calm.encodes {
            return here(bounds, || pair_of(&self.tokenizer, first, second));
        }
        let (first, second) = (first.to_owned(), second.to_owned());
        self.run_apart(bounds, move |engine| pair_of(&engine.tokenizer, &first, &second))
    }

    /// One step of a streaming decode.
    pub fn decode_step<T: Send + 'static>(
        self: &Arc<Self>,
        step: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if self.calm.decodes {
            return here(STEP_BOUNDS, step);
        }
        self.run_apart(STEP_BOUNDS, move |_| step())
    }

    fn decode(self: &Arc<Self>, ids: &[u32], skip_special_tokens: bool) -> Result<String> {
        let decode = move |engine: &Engine, ids: &[u32]| -> Result<String> {
            Ok(engine.tokenizer.decode(ids, skip_special_tokens).map_err(|e| e.to_string())?)
        };
        let bounds = decode_bounds(ids.len());
        if self.calm.decodes {
            return here(bounds, || decode(self, ids));
        }
        let ids = ids.to_vec();
        self.run_apart(bounds, move |engine| decode(engine, &ids))
    }
}

/// A pair of texts as the file's post-processor joins them.
struct Pair {
    ids: Vec<u32>,
    /// For each token twice its type, and 1 more if it belongs to the second text.
    places: Vec<u32>,
}

fn pair_of(tokenizer: &Tokenizer, first: &str, second: &str) -> Result<Pair> {
    let joined = tokenizer.encode_fast((first, second), true).map_err(|e| e.to_string())?;
    let sequences = joined.get_sequence_ids();
    let places = joined.get_type_ids().iter().zip(sequences);
    let places = places.map(|(kind, text)| kind.saturating_mul(2) | u32::from(text == Some(1))).collect();
    Ok(Pair { ids: joined.get_ids().to_vec(), places })
}

/// Makes everything that the engine initializes on first use. A failure there would be permanent, so no bounds may
/// apply.
fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        limit_searches();
        let mut bytes = PreTokenizedString::from("a");
        let _ = ByteLevel::default().pre_tokenize(&mut bytes);
        let _ = ByteLevel::default().decode_chain(vec!["a".into()]);
        let _ = Whitespace.pre_tokenize(&mut PreTokenizedString::from("a"));
        let mut tokenizer = Tokenizer::new(BPE::default());
        let _ = tokenizer.with_normalizer(Some(tokenizers::normalizers::ByteLevel));
        let _ = tokenizer.add_tokens([AddedToken::from("b", false).single_word(true).lstrip(true).rstrip(true)]);
        let _ = tokenizer.encode_fast("a b a", false);
    });
}

/// A copy of the bytes for a thread that may outlive the call.
fn copied(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len()).map_err(|_| Failure::NoMemory)?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}

pub struct SakerRsTokenizer {
    pub(crate) engine: Arc<Engine>,
    moved: String,
}

impl SakerRsTokenizer {
    fn inner(&self) -> &Tokenizer {
        &self.engine.tokenizer
    }
}

/// Removes truncation and padding, which are left from training. transformers sets both for each call; we encode whole
/// texts without either.
fn load(json: &[u8], other_files: &[u8]) -> Result<SakerRsTokenizer> {
    let longest_piece = longest_piece(json)?;
    let (mut tokenizer, moved) = added_tokens::load(json, other_files)?;
    tokenizer.with_truncation(None).map_err(|e| e.to_string())?;
    tokenizer.with_padding(None);
    let calm = Calm::of(&tokenizer, longest_piece)?;
    Ok(SakerRsTokenizer {
        engine: Arc::new(Engine { tokenizer, calm, cuts: OnceLock::new(), lost: AtomicBool::new(false) }),
        moved,
    })
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
        prepare();
        let (json, other_files) = (copied(borrow(json, size))?, copied(borrow(other_files, other_size))?);
        let tokenizer = apart("tokenizer", STACK, load_bounds(size), move || load(&json, &other_files))?;
        out.write(Box::into_raw(Box::new(tokenizer)));
        Ok(())
    })
}

/// # Safety
/// `tokenizer` came from `saker_rs_tokenizer_new` and was not freed before.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_tokenizer_free(tokenizer: *mut SakerRsTokenizer) {
    free(tokenizer);
}

/// # Safety
/// Pointers are valid for their sizes; `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_tokenizer_encode(
    tokenizer: *const SakerRsTokenizer,
    text: *const u8,
    size: usize,
    add_special_tokens: bool,
    most_ids: usize,
    out: *mut SakerRsIds,
    error: *mut SakerRsBytes,
) -> bool {
    guard(error, || {
        let ids = (*tokenizer).engine.encode(borrow_text(text, size)?, add_special_tokens, most_ids)?;
        out.write(ids.into());
        Ok(())
    })
}

/// # Safety
/// Pointers are valid for their sizes; `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_tokenizer_encode_marked(
    tokenizer: *const SakerRsTokenizer,
    text: *const u8,
    size: usize,
    marks: *const SakerRsMark,
    marks_size: usize,
    add_special_tokens: bool,
    out: *mut SakerRsIds,
    error: *mut SakerRsBytes,
) -> bool {
    guard(error, || {
        let (text, marks) = (borrow_text(text, size)?, borrow(marks, marks_size));
        let ids = (*tokenizer).engine.encode_marked(text, marks, add_special_tokens)?;
        out.write(ids.into());
        Ok(())
    })
}

/// # Safety
/// Pointers are valid for their sizes; `ids`, `places` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_tokenizer_encode_pair(
    tokenizer: *const SakerRsTokenizer,
    first: *const u8,
    first_size: usize,
    second: *const u8,
    second_size: usize,
    ids: *mut SakerRsIds,
    places: *mut SakerRsIds,
    error: *mut SakerRsBytes,
) -> bool {
    guard(error, || {
        let (first, second) = (borrow_text(first, first_size)?, borrow_text(second, second_size)?);
        let pair = (*tokenizer).engine.encode_pair(first, second)?;
        ids.write(pair.ids.into());
        places.write(pair.places.into());
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
        let text = (*tokenizer).engine.decode(borrow(ids, size), skip_special_tokens)?;
        out.write(text.into_bytes().into());
        Ok(())
    })
}

/// # Safety
/// `tokenizer` is alive.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_tokenizer_vocab_size(tokenizer: *const SakerRsTokenizer) -> usize {
    shield(0, || (*tokenizer).inner().get_vocab_size(true))
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
    shield(false, || {
        let text = std::str::from_utf8(borrow(text, size)).ok();
        let id = text.and_then(|text| (*tokenizer).inner().token_to_id(text));
        id.map(|id| out.write(id)).is_some()
    })
}

/// # Safety
/// `tokenizer` is alive; `found`, `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_tokenizer_piece(
    tokenizer: *const SakerRsTokenizer,
    id: u32,
    found: *mut bool,
    out: *mut SakerRsBytes,
    error: *mut SakerRsBytes,
) -> bool {
    guard(error, || {
        let piece = (*tokenizer).inner().id_to_token(id);
        found.write(piece.is_some());
        out.write(piece.unwrap_or_default().into_bytes().into());
        Ok(())
    })
}

/// # Safety
/// As above.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_tokenizer_bytes(
    tokenizer: *const SakerRsTokenizer,
    id: u32,
    out: *mut SakerRsBytes,
    error: *mut SakerRsBytes,
) -> bool {
    guard(error, || {
        out.write(bytes_of((*tokenizer).inner(), id)?.into());
        Ok(())
    })
}

/// # Safety
/// `tokenizer` is alive; `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_tokenizer_moved(
    tokenizer: *const SakerRsTokenizer,
    out: *mut SakerRsBytes,
    error: *mut SakerRsBytes,
) -> bool {
    guard(error, || {
        out.write((*tokenizer).moved.clone().into_bytes().into());
        Ok(())
    })
}

/// # Safety
/// `tokenizer` is alive.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_tokenizer_is_special(tokenizer: *const SakerRsTokenizer, id: u32) -> bool {
    shield(false, || {
        let added = (*tokenizer).inner().get_added_vocabulary().get_added_tokens_decoder();
        added.get(&id).is_some_and(|token| token.special)
    })
}
