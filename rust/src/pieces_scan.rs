// SPDX-License-Identifier: Apache-2.0
//! Measures the pieces of a tokenizer.json before it is built. The engine keeps some pieces as trees as deep as they
//! are long, frees these by recursion, and copies a piece each time that it is requested.

use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::Deserialize;
use std::fmt;

/// Maximum bytes of one piece. The longest in published files have a few hundred.
const MAX_PIECE: usize = 4096;

/// A key: its length in bytes, and the part that it names.
struct Key(usize, Part);

/// The place of a value in the file.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    File,
    Model,
    /// `model.vocab`: an object whose keys are pieces, or a list of pairs of piece and score. Also `added_tokens`: a
    /// list of objects with a `content`.
    Pieces,
    Other,
}

/// Finds the longest piece inside a value.
struct Scan(Part);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Key;

            fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
                out.write_str("a key")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Key, E> {
                let part = match text {
                    "model" => Part::Model,
                    "vocab" | "added_tokens" | "content" => Part::Pieces,
                    _ => Part::Other,
                };
                Ok(Key(text.len(), part))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

impl Scan {
    fn below(&self, key: &Key) -> Option<Scan> {
        match (self.0, key.1) {
            (Part::File, part @ (Part::Model | Part::Pieces)) => Some(Scan(part)),
            (Part::Model | Part::Pieces, Part::Pieces) => Some(Scan(Part::Pieces)),
            _ => None,
        }
    }
}

impl<'de> serde::de::DeserializeSeed<'de> for Scan {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Scan {
    type Value = usize;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<usize, E> {
        Ok(if self.0 == Part::Pieces { text.len() } else { 0 })
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<usize, E> {
        Ok(0)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<usize, E> {
        Ok(0)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<usize, E> {
        Ok(0)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<usize, E> {
        Ok(0)
    }

    fn visit_unit<E: Error>(self) -> Result<usize, E> {
        Ok(0)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<usize, A::Error> {
        let mut longest = 0;
        while let Some(length) = items.next_element_seed(Scan(self.0))? {
            longest = longest.max(length);
        }
        Ok(longest)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<usize, A::Error> {
        let mut longest = 0;
        while let Some(key) = entries.next_key::<Key>()? {
            match self.below(&key) {
                Some(scan) => longest = longest.max(entries.next_value_seed(scan)?),
                None => {
                    entries.next_value::<IgnoredAny>()?;
                }
            }
            if self.0 == Part::Pieces {
                longest = longest.max(key.0);
            }
        }
        Ok(longest)
    }
}

/// Bytes of the longest piece.
pub fn longest_piece(json: &[u8]) -> Result<usize, String> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    let longest = serde::de::DeserializeSeed::deserialize(Scan(Part::File), &mut reader).map_err(|e| e.to_string())?;
    if longest > MAX_PIECE {
        return Err(format!("a piece has {longest} bytes, at most {MAX_PIECE} expected"));
    }
    Ok(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_all_kinds_are_measured() {
        let long = "x".repeat(MAX_PIECE + 1);
        for file in [
            format!(r#"{{"model":{{"type":"BPE","vocab":{{"a":0,"{long}":1}},"merges":[]}}}}"#),
            format!(r#"{{"model":{{"vocab":[["a",0.0],["{long}",-1.5]]}}}}"#),
            format!(r#"{{"added_tokens":[{{"id":3,"content":"{long}","special":true}}]}}"#),
        ] {
            assert!(longest_piece(file.as_bytes()).is_err(), "{}", &file[..60]);
            let shorter = file.replace(&long, &long[1..]);
            assert_eq!(longest_piece(shorter.as_bytes()), Ok(MAX_PIECE));
        }
        let elsewhere = format!(r#"{{"normalizer":{{"content":"{long}"}},"model":{{"merges":["{long}"]}}}}"#);
        assert_eq!(longest_piece(elsewhere.as_bytes()), Ok(0));
        assert!(longest_piece(format!(r#"{{"model":{{"vocab":[["{long}",0.0]"#).as_bytes()).is_err());
    }
}
