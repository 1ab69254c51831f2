// SPDX-License-Identifier: Apache-2.0
//! Constraints on answers by the crate llguidance: which tokens may come next, so that the whole text is one of a JSON
//! schema, a regular expression or a grammar in its dialect of Lark. Constraints come from strangers: making one, and
//! each step, is bounded in time and memory.

use crate::bounded::{apart, here, Failure, Result};
use crate::ffi::{borrow, borrow_text, free, guard, SakerRsBytes};
use crate::memory::Bounds;
use crate::token_bytes::token_bytes;
use crate::tokenizer::SakerRsTokenizer;
use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{ApproximateTokEnv, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie};
use llguidance::{Matcher, ParserFactory};
use serde_json::{json, Value};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

const MB: usize = 1 << 20;
/// The engine recurses over the nesting of grammars and schemas, and along references and rules. Their checks bound that.
const STACK: usize = 256 * MB;
const MAX_NESTING: usize = 200;
/// References of a schema, or rules of a grammar, times the levels of each.
const MAX_REFERENCED: usize = 10_000;
const MAX_GRAMMAR: usize = 4 * MB;
const MAX_REGEX: usize = MB;
const MAX_MESSAGE: usize = 300;

/// For the trie of a vocabulary, and the tables that the engine makes of it.
const TRIE_BOUNDS: Bounds = Bounds { bytes: 1024 * MB, time: Duration::from_secs(10) };
const COMPILE_BOUNDS: Bounds = Bounds { bytes: 512 * MB, time: Duration::from_secs(5) };
const STEP_BOUNDS: Bounds = Bounds { bytes: 512 * MB, time: Duration::from_secs(1) };

/// What all constraints of one vocabulary share. Immutable.
pub struct SakerRsTokenTrie {
    factory: Arc<ParserFactory>,
}

/// A constraint and the tokens that it has accepted.
pub struct SakerRsConstraint {
    matcher: Matcher,
    /// The trie's own token that ends a text.
    own_end: u32,
}

fn text_of(error: impl std::fmt::Display) -> Failure {
    Failure::Text(error.to_string())
}

/// The trie has one more token, which ends a text where the model has none for that.
fn trie_of(tokenizer: &SakerRsTokenizer, ends: &[u32]) -> Result<ParserFactory> {
    let mut words = token_bytes(&tokenizer.engine.tokenizer)?;
    let own_end = words.len() as u32;
    let ends: Vec<u32> = ends.iter().copied().filter(|&id| id < own_end).chain([own_end]).collect();
    words.push([&[TokTrie::SPECIAL_TOKEN_MARKER], b"[end]".as_slice()].concat());
    let trie = TokTrie::from(&TokRxInfo::new(words.len() as u32, own_end), &words).with_eos_tokens(&ends);
    let env: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
    let slices = llguidance::earley::SlicedBiasComputer::general_slices();
    let mut factory = ParserFactory::new(&env, InferenceCapabilities::default(), &slices).map_err(text_of)?;
    factory.quiet().limits_mut().verbose_errors = false;
    Ok(factory)
}

/// JSON without blanks that nobody asked for: models could go on with them for ever.
fn compact(schema: Value) -> Value {
    let Value::Object(mut members) = schema else { return schema };
    members
        .entry("x-guidance")
        .or_insert_with(|| json!({"whitespace_flexible": false, "item_separator": ", ?", "key_separator": ": ?"}));
    Value::Object(members)
}

/// The engine reads groups, and follows rules, by recursion. Colons of rules and of JSON are outside of quotes.
fn check_grammar(grammar: &str) -> Result<()> {
    let (mut depth, mut deepest, mut colons) = (0usize, 0usize, 0usize);
    let (mut quoted, mut escaped) = (false, false);
    for byte in grammar.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b':' if !quoted => colons += 1,
            b'"' if !escaped => quoted = !quoted,
            b'\n' => quoted = false,
            _ => (),
        }
        escaped = byte == b'\\' && !escaped;
        deepest = deepest.max(depth);
    }
    if deepest > MAX_NESTING {
        return Err(Failure::Text(format!("it nests more than {MAX_NESTING} levels deep")));
    }
    if colons * (deepest + 1) > MAX_REFERENCED {
        return Err(Failure::Text(format!("it has {colons} rules over {} levels, which is too many", deepest + 1)));
    }
    Ok(())
}

/// The levels below a value, and the texts that it refers to.
fn survey<'a>(value: &'a Value, references: &mut HashSet<&'a str>) -> usize {
    let below = match value {
        Value::Object(members) => {
            references.extend(members.get("$ref").and_then(Value::as_str));
            members.values().map(|member| survey(member, references)).max()
        }
        Value::Array(items) => items.iter().map(|item| survey(item, references)).max(),
        _ => return 0,
    };
    below.unwrap_or(0) + 1
}

/// A chain of references may pass each of them once.
fn check_references(schema: &Value) -> Result<()> {
    let mut references = HashSet::new();
    let levels = survey(schema, &mut references);
    if references.len() * levels > MAX_REFERENCED {
        return Err(Failure::Text(format!(
            "it has {} references over {levels} levels, which is too many",
            references.len()
        )));
    }
    Ok(())
}

fn check_size(text: &str, most: usize) -> Result<()> {
    if text.len() > most {
        return Err(Failure::Text(format!("it has {} bytes, expected at most {most}", text.len())));
    }
    Ok(())
}

fn grammar_of(kind: u32, text: &str) -> Result<TopLevelGrammar> {
    match kind {
        0 => {
            check_size(text, MAX_GRAMMAR)?;
            let schema = serde_json::from_str(text).map_err(|e| format!("no JSON: {e}"))?;
            check_references(&schema)?;
            Ok(TopLevelGrammar::from_json_schema(compact(schema)))
        }
        1 => {
            check_size(text, MAX_REGEX)?;
            Ok(TopLevelGrammar::from_regex(text))
        }
        _ => {
            check_size(text, MAX_GRAMMAR)?;
            check_grammar(text)?;
            Ok(TopLevelGrammar::from_lark(text.to_owned()))
        }
    }
}

/// The engine's messages quote what it was given.
fn shortened(mut message: String) -> String {
    if let Some((end, _)) = message.char_indices().nth(MAX_MESSAGE) {
        message.truncate(end);
        message.push_str(" ...");
    }
    message
}

/// What stops a mask or a token, in words.
fn stop_text(error: impl std::fmt::Display) -> Failure {
    let message = error.to_string();
    let reason = message.split("\n<").next().unwrap_or_default().trim();
    Failure::Text(match reason {
        "NoExtension" | "NoExtensionBias" => "no text fits it".into(),
        other => shortened(other.into()),
    })
}

fn compile(factory: &ParserFactory, kind: u32, text: &str) -> Result<Matcher> {
    let matcher = Matcher::new(factory.create_parser(grammar_of(kind, text)?));
    match matcher.get_error() {
        Some(error) => Err(Failure::Text(shortened(error))),
        None => Ok(matcher),
    }
}

impl SakerRsConstraint {
    /// Whether the text may end here.
    fn mask(&mut self, words: &mut [u32]) -> Result<bool> {
        let mut mask = here(STEP_BOUNDS, || self.matcher.compute_mask_or_eos().map_err(stop_text))?;
        let may_end = mask.is_allowed(self.own_end);
        mask.disallow_token(self.own_end);
        words.fill(0);
        for (word, bits) in words.iter_mut().zip(mask.as_slice()) {
            *word = *bits;
        }
        Ok(may_end)
    }

    /// Bytes that come next in every text, as far as they are known without a token's own rules.
    fn forced(&mut self) -> Result<Vec<u8>> {
        let mut bytes = here(STEP_BOUNDS, || Ok(self.matcher.compute_ff_bytes()))?;
        let end = bytes.iter().position(|&byte| byte == TokTrie::SPECIAL_TOKEN_MARKER);
        bytes.truncate(end.unwrap_or(bytes.len()));
        Ok(bytes)
    }

    fn accept(&mut self, id: u32) -> Result<()> {
        here(STEP_BOUNDS, || self.matcher.consume_token(id).map_err(stop_text))
    }
}

/// # Safety
/// `tokenizer` is alive, `ends` is valid for its size; `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_token_trie_new(
    tokenizer: *const SakerRsTokenizer,
    ends: *const u32,
    count: usize,
    out: *mut *mut SakerRsTokenTrie,
    error: *mut SakerRsBytes,
) -> bool {
    guard(error, || {
        let factory = here(TRIE_BOUNDS, || trie_of(&*tokenizer, borrow(ends, count)))?;
        out.write(Box::into_raw(Box::new(SakerRsTokenTrie { factory: Arc::new(factory) })));
        Ok(())
    })
}

/// # Safety
/// `trie` came from `saker_rs_token_trie_new` and was not freed before.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_token_trie_free(trie: *mut SakerRsTokenTrie) {
    free(trie);
}

/// # Safety
/// `trie` is alive, `text` is valid for its size; `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_constraint_new(
    trie: *const SakerRsTokenTrie,
    kind: u32,
    text: *const u8,
    size: usize,
    out: *mut *mut SakerRsConstraint,
    error: *mut SakerRsBytes,
) -> bool {
    guard(error, || {
        let (factory, text) = ((*trie).factory.clone(), borrow_text(text, size)?.to_owned());
        let matcher = apart("constraint", STACK, COMPILE_BOUNDS, move || compile(&factory, kind, &text))?;
        let own_end = (*trie).factory.tok_env().tok_trie().vocab_size() as u32 - 1;
        out.write(Box::into_raw(Box::new(SakerRsConstraint { matcher, own_end })));
        Ok(())
    })
}

/// # Safety
/// `constraint` came from `saker_rs_constraint_new` and was not freed before.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_constraint_free(constraint: *mut SakerRsConstraint) {
    free(constraint);
}

/// # Safety
/// `constraint` is alive and not used elsewhere at the same time; `words` is writable for its size, `may_end` and
/// `error` too.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_constraint_mask(
    constraint: *mut SakerRsConstraint,
    words: *mut u32,
    count: usize,
    may_end: *mut bool,
    error: *mut SakerRsBytes,
) -> bool {
    guard(error, || {
        may_end.write((*constraint).mask(std::slice::from_raw_parts_mut(words, count))?);
        Ok(())
    })
}

/// # Safety
/// `constraint` is alive and not used elsewhere at the same time; `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_constraint_forced(
    constraint: *mut SakerRsConstraint,
    out: *mut SakerRsBytes,
    error: *mut SakerRsBytes,
) -> bool {
    guard(error, || {
        out.write((*constraint).forced()?.into());
        Ok(())
    })
}

/// # Safety
/// As for `saker_rs_constraint_mask`; `complete` is writable.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_constraint_accept(
    constraint: *mut SakerRsConstraint,
    id: u32,
    complete: *mut bool,
    error: *mut SakerRsBytes,
) -> bool {
    guard(error, || {
        (*constraint).accept(id)?;
        complete.write((*constraint).matcher.is_stopped());
        Ok(())
    })
}
