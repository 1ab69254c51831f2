// SPDX-License-Identifier: Apache-2.0
//! Reads a tokenizer.json whose model is a BPE, as nearly all are. The engine's own reader keeps each merge as a value of
//! unknown kind and copies it into its kind; merges are most of a file. What is unknown here is left to that reader.

use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde::Deserialize;
use std::fmt;
use tokenizers::decoders::DecoderWrapper;
use tokenizers::models::bpe::{Vocab, BPE};
use tokenizers::models::ModelWrapper;
use tokenizers::normalizers::NormalizerWrapper;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::processors::PostProcessorWrapper;
use tokenizers::{AddedToken, PaddingParams, Tokenizer, TokenizerBuilder, TruncationParams};

/// Two pieces: a list, or in older files a text with a space between them.
struct Merge(String, String);

impl<'de> Deserialize<'de> for Merge {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Merge, D::Error> {
        struct Pair;
        impl<'de> Visitor<'de> for Pair {
            type Value = Merge;

            fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
                out.write_str("two pieces")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut pieces: A) -> Result<Merge, A::Error> {
                match (pieces.next_element()?, pieces.next_element()?) {
                    (Some(left), Some(right)) => Ok(Merge(left, right)),
                    _ => Err(A::Error::invalid_length(0, &self)),
                }
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Merge, E> {
                match text.split_once(' ') {
                    // A file's version stands among merges too.
                    Some((left, right)) if !right.contains(' ') && !left.starts_with("#version") => {
                        Ok(Merge(left.to_owned(), right.to_owned()))
                    }
                    _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(Pair)
    }
}

#[derive(Deserialize)]
struct Model {
    #[serde(rename = "type")]
    kind: Option<String>,
    dropout: Option<f32>,
    unk_token: Option<String>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    fuse_unk: Option<bool>,
    byte_fallback: Option<bool>,
    ignore_merges: Option<bool>,
    vocab: Vocab,
    merges: Vec<Merge>,
}

impl Model {
    fn build(self) -> Option<BPE> {
        if self.kind.is_some_and(|kind| kind != "BPE") {
            return None;
        }
        let merges = self.merges.into_iter().map(|Merge(left, right)| (left, right)).collect();
        let mut builder = BPE::builder().vocab_and_merges(self.vocab, merges);
        if let Some(dropout) = self.dropout {
            builder = builder.dropout(dropout);
        }
        if let Some(piece) = self.unk_token {
            builder = builder.unk_token(piece);
        }
        if let Some(prefix) = self.continuing_subword_prefix {
            builder = builder.continuing_subword_prefix(prefix);
        }
        if let Some(suffix) = self.end_of_word_suffix {
            builder = builder.end_of_word_suffix(suffix);
        }
        let builder = builder
            .fuse_unk(self.fuse_unk.unwrap_or(false))
            .byte_fallback(self.byte_fallback.unwrap_or(false))
            .ignore_merges(self.ignore_merges.unwrap_or(false));
        builder.build().ok()
    }
}

/// The id is what the model gives its text.
#[derive(Deserialize)]
struct OwnToken {
    #[serde(rename = "id")]
    _id: u32,
    #[serde(flatten)]
    token: AddedToken,
}

#[derive(Deserialize)]
struct File {
    version: Option<String>,
    truncation: Option<TruncationParams>,
    padding: Option<PaddingParams>,
    #[serde(default)]
    added_tokens: Vec<OwnToken>,
    normalizer: Option<NormalizerWrapper>,
    pre_tokenizer: Option<PreTokenizerWrapper>,
    post_processor: Option<PostProcessorWrapper>,
    decoder: Option<DecoderWrapper>,
    model: Model,
}

/// None for a broken file and for what only the engine's reader knows.
pub fn read(json: &[u8]) -> Option<Tokenizer> {
    let file: File = serde_json::from_slice(json).ok()?;
    if file.version.is_some_and(|version| version != "1.0") {
        return None;
    }
    let builder = TokenizerBuilder::new()
        .with_model(ModelWrapper::BPE(file.model.build()?))
        .with_normalizer(file.normalizer)
        .with_pre_tokenizer(file.pre_tokenizer)
        .with_post_processor(file.post_processor)
        .with_decoder(file.decoder)
        .with_truncation(file.truncation)
        .with_padding(file.padding);
    let mut tokenizer: Tokenizer = builder.build().ok()?.into();
    tokenizer.add_tokens(file.added_tokens.into_iter().map(|own| own.token)).ok()?;
    Some(tokenizer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(kind: &str, merges: &str, version: &str) -> String {
        format!(
            r#"{{"version":"{version}","truncation":null,"padding":null,
            "added_tokens":[{{"id":4,"content":"<end>","single_word":false,"lstrip":false,"rstrip":false,
            "normalized":false,"special":true}}],
            "normalizer":{{"type":"NFC"}},"pre_tokenizer":null,"post_processor":null,"decoder":null,
            "model":{{"type":"{kind}","dropout":null,"unk_token":"a","fuse_unk":true,"byte_fallback":true,
            "ignore_merges":true,"vocab":{{"a":0,"b":1,"ab":2,"abb":3}},"merges":{merges}}}}}"#
        )
    }

    #[test]
    fn files_are_read_as_the_engine_reads_them() {
        for merges in [r#"[["a","b"],["ab","b"]]"#, r#"["a b","ab b"]"#, "[]"] {
            let json = file("BPE", merges, "1.0");
            let read = read(json.as_bytes()).expect(merges);
            let engines = Tokenizer::from_bytes(json.as_bytes()).unwrap();
            assert_eq!(read.to_string(false).unwrap(), engines.to_string(false).unwrap());
            assert_eq!(
                read.encode("abb<end>", false).unwrap().get_ids(),
                engines.encode("abb<end>", false).unwrap().get_ids()
            );
        }
    }

    #[test]
    fn other_files_are_left_to_the_engine() {
        let merges = r#"[["a","b"]]"#;
        assert!(read(file("BPE", merges, "1.0").as_bytes()).is_some());
        assert!(read(file("WordPiece", merges, "1.0").as_bytes()).is_none());
        assert!(read(file("BPE", merges, "2.0").as_bytes()).is_none());
        for merges in
            [r##"["#version: 0.2","a b"]"##, r#"["a b b"]"#, r#"[["a"]]"#, r#"[["a","b","b"]]"#, r#"[["a","c"]]"#]
        {
            assert!(read(file("BPE", merges, "1.0").as_bytes()).is_none(), "{merges}");
        }
    }
}
