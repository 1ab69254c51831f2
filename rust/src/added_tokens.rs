// SPDX-License-Identifier: Apache-2.0
//! Adds tokens from the files beside tokenizer.json, in transformers' order and with its flags.

use crate::bpe_file;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashSet};
use tokenizers::decoders::DecoderWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::{AddedToken, Tokenizer};

/// A token as a file describes it. Equality is that of the Python values.
#[derive(Clone, Deserialize, PartialEq, Eq, Hash)]
struct Token {
    content: String,
    /// The file gives only its text: such tokens are special.
    #[serde(default)]
    plain: bool,
    #[serde(default)]
    single_word: bool,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
    #[serde(default)]
    normalized: Option<bool>,
    #[serde(default)]
    special: bool,
}

impl Token {
    fn added(&self, named: &HashSet<&str>) -> AddedToken {
        let special = self.plain || self.special || named.contains(self.content.as_str());
        AddedToken::from(self.content.as_str(), special)
            .single_word(self.single_word)
            .lstrip(self.lstrip)
            .rstrip(self.rstrip)
            .normalized(self.normalized.unwrap_or(!special))
    }
}

/// Content of the other files; written by saker/text/tokenizer_config.cpp.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct OtherFiles {
    /// With the ids of the files, which only give the order.
    listed: Vec<(i64, Token)>,
    /// The tokens of tokenizer.json are listed too.
    with_own: bool,
    /// Only listed tokens exist: the tokenizer's class rebuilds its vocabulary.
    only_listed: bool,
    /// Special tokens with a name, then those without; added unless their text is added already.
    named: Vec<Token>,
    extra: Vec<Token>,
    /// In the end all special tokens lose their flags.
    plain_specials: bool,
    /// Special tokens in a text are encoded as plain text.
    split_special_tokens: bool,
    add_prefix_space: Option<bool>,
}

#[derive(Deserialize)]
struct OwnToken {
    id: i64,
    #[serde(flatten)]
    token: AddedToken,
}

#[derive(Deserialize)]
struct OwnFile<'a> {
    #[serde(borrow)]
    added_tokens: Option<&'a RawValue>,
}

type Result<T> = std::result::Result<T, String>;

/// The file's own list as JSON text. `json` may hold the key once.
fn own_list(json: &[u8]) -> Result<Option<&str>> {
    let file: OwnFile = serde_json::from_slice(json).map_err(|e| e.to_string())?;
    Ok(file.added_tokens.map(RawValue::get).filter(|text| text.starts_with('[')))
}

fn without(json: &[u8], list: &str) -> Vec<u8> {
    let start = list.as_ptr() as usize - json.as_ptr() as usize;
    [&json[..start], b"[]", &json[start + list.len()..]].concat()
}

fn described(token: AddedToken) -> Token {
    Token {
        content: token.content,
        plain: false,
        single_word: token.single_word,
        lstrip: token.lstrip,
        rstrip: token.rstrip,
        normalized: Some(token.normalized),
        special: token.special,
    }
}

fn own_tokens(list: &str) -> Result<Vec<(i64, Token)>> {
    let own: Vec<OwnToken> = serde_json::from_str(list).map_err(|e| e.to_string())?;
    Ok(own.into_iter().map(|own| (own.id, described(own.token))).collect())
}

/// The listed tokens by id, then special tokens that are not added yet.
fn to_add<'a>(engine: &Tokenizer, listed: &'a BTreeMap<i64, Token>, files: &'a OtherFiles) -> Vec<&'a Token> {
    let known: HashSet<&str> = listed.values().map(|token| token.content.as_str()).collect();
    let own = engine.get_added_vocabulary().get_vocab();
    let mut tokens: Vec<&Token> = listed.values().collect();
    let mut late: HashSet<&Token> = HashSet::new();
    for token in files.named.iter().chain(&files.extra) {
        let text = token.content.as_str();
        if !known.contains(text) && !own.contains_key(text) && late.insert(token) {
            tokens.push(token);
        }
    }
    tokens
}

fn add(engine: &mut Tokenizer, listed: &BTreeMap<i64, Token>, files: &OtherFiles) -> Result<()> {
    let named: HashSet<&str> = files.named.iter().map(|token| token.content.as_str()).collect();
    let tokens: Vec<AddedToken> = to_add(engine, listed, files).into_iter().map(|token| token.added(&named)).collect();
    engine.add_tokens(tokens).map_err(|e| e.to_string())?;
    if files.plain_specials {
        let specials = files.named.iter().chain(&files.extra);
        let plain: Vec<AddedToken> = specials.map(|token| AddedToken::from(token.content.as_str(), true)).collect();
        engine.add_tokens(plain).map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// One line about tokens with another id than their file gives; empty without such tokens.
fn moved(engine: &Tokenizer, listed: &[(i64, Token)]) -> String {
    let mut others = listed.iter().filter_map(|(id, token)| {
        let got = engine.token_to_id(&token.content).filter(|got| i64::from(*got) != *id)?;
        Some(format!("token {:?} is listed with id {id} and has id {got}", token.content))
    });
    let Some(first) = others.next() else { return String::new() };
    match others.count() {
        0 => first,
        more => format!("{first}, and {more} more so"),
    }
}

fn byte_levels(step: &mut PreTokenizerWrapper) -> Vec<&mut ByteLevel> {
    match step {
        PreTokenizerWrapper::ByteLevel(step) => vec![step],
        PreTokenizerWrapper::Sequence(steps) => steps.as_mut().iter_mut().flat_map(byte_levels).collect(),
        _ => Vec::new(),
    }
}

fn decodes_bytes(step: &DecoderWrapper) -> bool {
    match step {
        DecoderWrapper::ByteLevel(_) => true,
        DecoderWrapper::Sequence(steps) => steps.get_decoders().iter().any(decodes_bytes),
        _ => false,
    }
}

/// Vocabularies of bytes get the byte-level decoder, whatever the file names: several published ones name
/// SentencePiece's decoder, which would print the letters that stand for bytes.
fn settle_bytes(engine: &mut Tokenizer, add_prefix_space: Option<bool>) {
    let Some(mut steps) = engine.get_pre_tokenizer().cloned() else { return };
    let mut levels = byte_levels(&mut steps);
    if levels.is_empty() {
        return;
    }
    if let Some(space) = add_prefix_space {
        levels.iter_mut().for_each(|level| level.add_prefix_space = space);
        engine.with_pre_tokenizer(Some(steps));
    }
    if !engine.get_decoder().is_some_and(decodes_bytes) && engine.token_to_id("Ġ").is_some() {
        engine.with_decoder(Some(ByteLevel::default()));
    }
}

/// In the engine's way unless the model is a BPE of the usual form.
fn read(json: &[u8]) -> Result<Tokenizer> {
    bpe_file::read(json).map_or_else(|| Tokenizer::from_bytes(json).map_err(|e| e.to_string()), Ok)
}

/// The engine, and a line about tokens whose ids differ from their files'.
pub fn load(json: &[u8], other_files: &[u8]) -> Result<(Tokenizer, String)> {
    let mut files = OtherFiles::default();
    if !other_files.is_empty() {
        files = serde_json::from_slice(other_files).map_err(|e| e.to_string())?;
    }
    let mut listed: BTreeMap<i64, Token> = files.listed.iter().cloned().collect();
    let own = if files.only_listed { own_list(json)? } else { None };
    let mut engine = match own {
        Some(list) => read(&without(json, list))?,
        None => read(json)?,
    };
    if files.with_own {
        listed.extend(own.map_or(Ok(Vec::new()), own_tokens)?);
        let known = engine.get_added_vocabulary().get_added_tokens_decoder();
        listed.extend(known.iter().map(|(id, token)| (i64::from(*id), described(token.clone()))));
    }
    add(&mut engine, &listed, &files)?;
    settle_bytes(&mut engine, files.add_prefix_space);
    engine.set_encode_special_tokens(files.split_special_tokens);
    let moved = moved(&engine, &files.listed);
    Ok((engine, moved))
}
