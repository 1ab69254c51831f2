// SPDX-License-Identifier: Apache-2.0
//! Streaming decode: the fragments of `add` and `finish` join to the engine's `decode` of all ids, byte for byte.
//!
//! A tokenizer's decoder is a list of steps over the list of tokens. All known steps look at one token and a bounded
//! neighbourhood. So each has a streaming twin here that calls the engine's own step on that neighbourhood: no second
//! implementation, no growing window, constant work per token. Text is held back only while a later token can still
//! change it: an incomplete character, a run of byte-fallback tokens, the last token of a suffix decoder. After a
//! fusing step there is a single text; a trailing step without a streaming twin is applied at the end.

use crate::bounded::{Failure, Result};
use crate::ffi::{free, guard, SakerRsBytes};
use crate::tokenizer::{Engine, SakerRsTokenizer};
use std::sync::Arc;
use tokenizers::decoders::DecoderWrapper;
use tokenizers::Decoder;

/// One decoder step that sees tokens one by one. It holds strings that later tokens may change.
enum TokenStep {
    /// Each token on its own.
    Each(DecoderWrapper),
    /// The first token is treated differently from the others; the flag says that it has passed.
    FirstDiffers(DecoderWrapper, bool),
    /// The last token is treated differently, so one is held.
    LastDiffers(DecoderWrapper, Option<String>),
    /// Equal neighbours count once; holds the one before.
    Deduplicate(DecoderWrapper, Option<String>),
    /// A run of byte tokens is decoded as a whole.
    ByteRun(DecoderWrapper, Vec<String>),
}

fn run(step: &DecoderWrapper, tokens: Vec<String>) -> Result<Vec<String>> {
    Ok(step.decode_chain(tokens).map_err(|e| e.to_string())?)
}

pub fn is_byte_token(token: &str) -> bool {
    token.len() == 6 && token.starts_with("<0x") && token.ends_with('>') && u8::from_str_radix(&token[3..5], 16).is_ok()
}

impl TokenStep {
    fn new(step: &DecoderWrapper) -> Option<TokenStep> {
        let own = step.clone();
        Some(match step {
            DecoderWrapper::Replace(_) | DecoderWrapper::Strip(_) => TokenStep::Each(own),
            DecoderWrapper::Metaspace(_) | DecoderWrapper::WordPiece(_) => TokenStep::FirstDiffers(own, false),
            DecoderWrapper::BPE(_) => TokenStep::LastDiffers(own, None),
            DecoderWrapper::CTC(_) => TokenStep::Deduplicate(own, None),
            DecoderWrapper::ByteFallback(_) => TokenStep::ByteRun(own, Vec::new()),
            DecoderWrapper::ByteLevel(_) | DecoderWrapper::Fuse(_) | DecoderWrapper::Sequence(_) => return None,
        })
    }

    /// Takes the next token and returns the tokens that are now final.
    fn push(&mut self, token: String) -> Result<Vec<String>> {
        match self {
            TokenStep::Each(step) => run(step, vec![token]),
            TokenStep::FirstDiffers(step, started) => {
                if !std::mem::replace(started, true) {
                    return run(step, vec![token]);
                }
                let mut pair = run(step, vec![String::new(), token])?;
                Ok(pair.split_off(1))
            }
            TokenStep::LastDiffers(step, held) => match held.replace(token) {
                None => Ok(Vec::new()),
                Some(before) => {
                    let mut pair = run(step, vec![before, String::new()])?;
                    pair.truncate(1);
                    Ok(pair)
                }
            },
            TokenStep::Deduplicate(step, before) => {
                if before.as_ref() == Some(&token) {
                    return Ok(Vec::new());
                }
                *before = Some(token.clone());
                run(step, vec![token])
            }
            TokenStep::ByteRun(step, held) => {
                if is_byte_token(&token) {
                    held.push(token);
                    return Ok(Vec::new());
                }
                held.push(token);
                run(step, std::mem::take(held))
            }
        }
    }

    /// The held tokens, at the end.
    fn finish(&mut self) -> Result<Vec<String>> {
        match self {
            TokenStep::Each(_) | TokenStep::FirstDiffers(..) | TokenStep::Deduplicate(..) => Ok(Vec::new()),
            TokenStep::LastDiffers(step, held) => held.take().map_or(Ok(Vec::new()), |last| run(step, vec![last])),
            TokenStep::ByteRun(step, held) if !held.is_empty() => run(step, std::mem::take(held)),
            TokenStep::ByteRun(..) => Ok(Vec::new()),
        }
    }
}

/// Joins the final tokens to text.
enum Join {
    /// No decoder: a space between tokens.
    Spaced { started: bool },
    /// Tokens one after the other.
    Plain,
    /// Byte-level alphabet: token characters are bytes; holds the bytes of an incomplete character.
    ByteLevel { pending: Vec<u8> },
}

/// The byte of a character of the byte-level alphabet. Printable Latin-1 characters stand for themselves, the other 68
/// bytes follow from U+0100 in order.
pub fn byte_of(character: char) -> Option<u8> {
    let is_printable = |b: u8| matches!(b, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    match u32::from(character) {
        code @ 0..=0xFF => Some(code as u8).filter(|&b| is_printable(b)),
        code => (0..=255u8).filter(|&b| !is_printable(b)).nth(code as usize - 0x100),
    }
}

/// Appends `pending` to `text` as `String::from_utf8_lossy` would, but leaves an incomplete last character.
fn drain_utf8(pending: &mut Vec<u8>, text: &mut String) {
    let mut start = 0;
    while start < pending.len() {
        match std::str::from_utf8(&pending[start..]) {
            Ok(valid) => {
                text.push_str(valid);
                start = pending.len();
            }
            Err(e) => {
                let end = start + e.valid_up_to();
                text.push_str(&String::from_utf8_lossy(&pending[start..end]));
                start = end;
                let Some(bad) = e.error_len() else { break };
                text.push(char::REPLACEMENT_CHARACTER);
                start += bad;
            }
        }
    }
    pending.drain(..start);
}

impl Join {
    fn push(&mut self, token: &str, text: &mut String) {
        match self {
            Join::Spaced { started } => {
                if std::mem::replace(started, true) {
                    text.push(' ');
                }
                text.push_str(token);
            }
            Join::Plain => text.push_str(token),
            Join::ByteLevel { pending } => {
                let bytes: Option<Vec<u8>> = token.chars().map(byte_of).collect();
                pending.extend(bytes.unwrap_or_else(|| token.as_bytes().to_vec()));
                drain_utf8(pending, text);
            }
        }
    }

    fn finish(&mut self, text: &mut String) {
        if let Join::ByteLevel { pending } = self {
            text.push_str(&String::from_utf8_lossy(pending));
            pending.clear();
        }
    }
}

/// A step on the joined text.
enum TextStep {
    /// Cuts up to `left` leading `content` characters.
    StripStart { content: char, left: usize },
    /// Any other step: needs the whole text.
    Whole { step: DecoderWrapper, text: String },
}

impl TextStep {
    fn new(step: &DecoderWrapper) -> TextStep {
        match step {
            DecoderWrapper::Strip(strip) if strip.stop == 0 => {
                TextStep::StripStart { content: strip.content, left: strip.start }
            }
            _ => TextStep::Whole { step: step.clone(), text: String::new() },
        }
    }

    fn push(&mut self, mut fragment: String) -> String {
        match self {
            TextStep::StripStart { content, left } => {
                while *left > 0 && !fragment.is_empty() {
                    if fragment.starts_with(*content) {
                        fragment.remove(0);
                        *left -= 1;
                    } else {
                        *left = 0;
                    }
                }
                fragment
            }
            TextStep::Whole { text, .. } => {
                text.push_str(&fragment);
                String::new()
            }
        }
    }

    fn finish(&mut self) -> Result<String> {
        match self {
            TextStep::StripStart { .. } => Ok(String::new()),
            TextStep::Whole { step, text } => Ok(run(step, vec![std::mem::take(text)])?.concat()),
        }
    }
}

pub fn flatten<'a>(step: &'a DecoderWrapper, out: &mut Vec<&'a DecoderWrapper>) {
    match step {
        DecoderWrapper::Sequence(sequence) => sequence.get_decoders().iter().for_each(|s| flatten(s, out)),
        _ => out.push(step),
    }
}

/// The state between tokens.
struct State {
    token_steps: Vec<TokenStep>,
    join: Join,
    text_steps: Vec<TextStep>,
}

impl State {
    fn new(engine: &Engine) -> Self {
        let mut steps = Vec::new();
        let mut join = Join::Spaced { started: false };
        if let Some(decoder) = engine.tokenizer.get_decoder() {
            flatten(decoder, &mut steps);
            join = Join::Plain;
        }
        let fuse = steps.iter().position(|step| TokenStep::new(step).is_none()).unwrap_or(steps.len());
        if let Some(DecoderWrapper::ByteLevel(_)) = steps.get(fuse) {
            join = Join::ByteLevel { pending: Vec::new() };
        }
        let token_steps = steps[..fuse].iter().filter_map(|step| TokenStep::new(step)).collect();
        let text_steps = steps.iter().skip(fuse + 1).map(|step| TextStep::new(step)).collect();
        State { token_steps, join, text_steps }
    }

    /// Sends `tokens` through the token steps from number `first` on.
    fn advance(&mut self, tokens: Vec<String>, first: usize, text: &mut String) -> Result<()> {
        let mut tokens = tokens;
        for step in &mut self.token_steps[first..] {
            let mut next = Vec::new();
            for token in tokens {
                next.append(&mut step.push(token)?);
            }
            tokens = next;
        }
        tokens.iter().for_each(|token| self.join.push(token, text));
        Ok(())
    }

    fn add(&mut self, token: String) -> Result<String> {
        let mut text = String::new();
        self.advance(vec![token], 0, &mut text)?;
        Ok(self.text_steps.iter_mut().fold(text, |fragment, step| step.push(fragment)))
    }

    fn finish(&mut self) -> Result<String> {
        let mut text = String::new();
        for number in 0..self.token_steps.len() {
            let held = self.token_steps[number].finish()?;
            self.advance(held, number + 1, &mut text)?;
        }
        self.join.finish(&mut text);
        for step in &mut self.text_steps {
            text = step.push(text) + &step.finish()?;
        }
        Ok(text)
    }
}

pub struct SakerRsDetokenizer {
    engine: Arc<Engine>,
    skip_special_tokens: bool,
    /// None after a step has failed; its held text is lost.
    state: Option<State>,
}

impl SakerRsDetokenizer {
    fn new(engine: Arc<Engine>, skip_special_tokens: bool) -> Self {
        let state = Some(State::new(&engine));
        SakerRsDetokenizer { engine, skip_special_tokens, state }
    }

    /// The token that the engine would decode `id` as; unknown ids are skipped, as in the engine.
    fn token(&self, id: u32) -> Option<String> {
        let tokenizer = &self.engine.tokenizer;
        let is_special = |token: &String| tokenizer.get_added_vocabulary().is_special_token(token);
        tokenizer.id_to_token(id).filter(|token| !self.skip_special_tokens || !is_special(token))
    }

    fn step(&mut self, step: impl FnOnce(&mut State) -> Result<String> + Send + 'static) -> Result<String> {
        let Some(mut state) = self.state.take() else {
            return Err(Failure::Text("an earlier token could not be decoded".into()));
        };
        let (text, state) = self.engine.decode_step(move || Ok((step(&mut state)?, state)))?;
        self.state = Some(state);
        Ok(text)
    }

    fn add(&mut self, id: u32) -> Result<String> {
        match self.token(id) {
            Some(token) => self.step(|state| state.add(token)),
            None => Ok(String::new()),
        }
    }

    fn finish(&mut self) -> Result<String> {
        self.step(State::finish)
    }
}

/// # Safety
/// `tokenizer` is alive; it may be freed before the detokenizer. `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_detokenizer_new(
    tokenizer: *const SakerRsTokenizer,
    skip_special_tokens: bool,
    out: *mut *mut SakerRsDetokenizer,
    error: *mut SakerRsBytes,
) -> bool {
    guard(error, || {
        let state = SakerRsDetokenizer::new((*tokenizer).engine.clone(), skip_special_tokens);
        out.write(Box::into_raw(Box::new(state)));
        Ok(())
    })
}

/// # Safety
/// `detokenizer` came from `saker_rs_detokenizer_new` and was not freed before.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_detokenizer_free(detokenizer: *mut SakerRsDetokenizer) {
    free(detokenizer);
}

/// # Safety
/// `detokenizer` is alive and not used elsewhere at the same time; `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_detokenizer_add(
    detokenizer: *mut SakerRsDetokenizer,
    id: u32,
    out: *mut SakerRsBytes,
    error: *mut SakerRsBytes,
) -> bool {
    guard(error, || {
        out.write((*detokenizer).add(id)?.into_bytes().into());
        Ok(())
    })
}

/// # Safety
/// `detokenizer` is alive and not used elsewhere at the same time; `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_detokenizer_finish(
    detokenizer: *mut SakerRsDetokenizer,
    out: *mut SakerRsBytes,
    error: *mut SakerRsBytes,
) -> bool {
    guard(error, || {
        out.write((*detokenizer).finish()?.into_bytes().into());
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_byte_alphabet_is_the_engines() {
        let alphabet = tokenizers::pre_tokenizers::byte_level::ByteLevel::alphabet();
        let mut bytes: Vec<u8> = alphabet.iter().filter_map(|&c| byte_of(c)).collect();
        bytes.sort_unstable();
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
        assert_eq!(
            [byte_of('Ġ'), byte_of('Ċ'), byte_of('ð'), byte_of('中')],
            [Some(b' '), Some(b'\n'), Some(0xf0), None]
        );
    }

    #[test]
    fn pieces_of_bytes_join_to_lossy_text() {
        // All sequences of four bytes from those that begin, continue or break a character.
        const BYTES: [u8; 9] = [b'a', 0x80, 0xbf, 0xc3, 0xe0, 0xed, 0xf0, 0xf4, 0xff];
        for number in 0..BYTES.len().pow(4) {
            let bytes: Vec<u8> = (0..4).map(|i| BYTES[number / BYTES.len().pow(i) % BYTES.len()]).collect();
            let (mut pending, mut text) = (Vec::new(), String::new());
            for &byte in &bytes {
                pending.push(byte);
                drain_utf8(&mut pending, &mut text);
                assert!(pending.len() < 4);
            }
            text.push_str(&String::from_utf8_lossy(&pending));
            assert_eq!(text, String::from_utf8_lossy(&bytes), "{bytes:?}");
        }
    }
}
