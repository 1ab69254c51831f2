// SPDX-License-Identifier: Apache-2.0
//! Reads a template's variables from CBOR, which keeps every bit of a float. Integers beyond 64 bits come as their
//! decimal digits, under a tag of ours.

use super::arguments::invalid;
use super::integers;
use super::values::{list, Dict};
use ciborium::Value as Cbor;
use minijinja::{Error, Value};

/// The tag of integers as decimal digits (saker/base/json/json.h).
const DIGITS: u64 = 100;

fn value_of(cbor: Cbor) -> Result<Value, Error> {
    Ok(match cbor {
        Cbor::Null => Value::from(()),
        Cbor::Bool(flag) => Value::from(flag),
        Cbor::Integer(number) => integers::from_i128(number.into()),
        Cbor::Float(number) => Value::from(number),
        Cbor::Text(text) => Value::from(text),
        Cbor::Array(items) => list(items.into_iter().map(value_of).collect::<Result<_, Error>>()?),
        Cbor::Map(pairs) => {
            let mut dict = Dict::default();
            for (key, value) in pairs {
                dict.insert(value_of(key)?, value_of(value)?)?;
            }
            dict.into()
        }
        Cbor::Tag(DIGITS, content) => {
            let digits = content.as_bytes().and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or("");
            integers::parse(digits, 10).ok_or_else(|| invalid("an integer with too many digits"))?
        }
        _ => return Err(invalid("a variable of an unknown type")),
    })
}

pub fn read(bytes: &[u8]) -> Result<Value, Error> {
    let cbor = ciborium::from_reader(bytes).map_err(|_| invalid("the messages are not valid UTF-8"))?;
    value_of(cbor)
}
