// SPDX-License-Identifier: Apache-2.0
//! Arguments of filters, functions and methods by Python's rules: by position or by name, each at most once.

use super::integers;
use super::python::{kind_name, to_text};
use minijinja::value::Kwargs;
use minijinja::{Error, ErrorKind, Value};
use std::cell::Cell;

pub struct Arguments {
    names: &'static [&'static str],
    values: Vec<Option<Value>>,
}

pub fn invalid(text: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, text)
}

thread_local! {
    static LINE: Cell<u32> = const { Cell::new(0) };
}

/// Records the line of the template that is read or run.
pub fn set_line(line: u32) {
    LINE.set(line);
}

/// The line that was read or run last; 0 before the first.
pub fn line() -> u32 {
    LINE.get()
}

/// Splits the arguments of a call into positional and named ones.
pub fn split(given: &[Value]) -> (&[Value], Option<Kwargs>) {
    match given.split_last() {
        Some((last, before)) if last.is_kwargs() => (before, Kwargs::try_from(last.clone()).ok()),
        _ => (given, None),
    }
}

impl Arguments {
    pub fn bind(names: &'static [&'static str], given: &[Value]) -> Result<Self, Error> {
        let (positional, named) = split(given);
        if positional.len() > names.len() {
            return Err(invalid(format!("{} arguments, at most {} expected", positional.len(), names.len())));
        }
        let mut values: Vec<Option<Value>> = positional.iter().cloned().map(Some).collect();
        values.resize(names.len(), None);
        for key in named.iter().flat_map(Kwargs::args) {
            let Some(place) = names.iter().position(|name| *name == key) else {
                return Err(invalid(format!("unknown argument {key}")));
            };
            if values[place].is_some() {
                return Err(invalid(format!("argument {key} is given twice")));
            }
            values[place] = named.as_ref().map(|named| named.get(key)).transpose()?;
        }
        Ok(Arguments { names, values })
    }

    fn wrong_type(&self, index: usize, value: &Value, expected: &str) -> Error {
        invalid(format!("argument {} is {}, {expected} expected", self.names[index], kind_name(value)))
    }

    pub fn given(&self, index: usize) -> Option<&Value> {
        self.values[index].as_ref()
    }

    /// The argument; `none` counts as absent.
    pub fn get(&self, index: usize) -> Option<&Value> {
        self.given(index).filter(|value| !value.is_none())
    }

    pub fn required(&self, index: usize) -> Result<&Value, Error> {
        self.given(index).ok_or_else(|| invalid(format!("argument {} is missing", self.names[index])))
    }

    pub fn flag(&self, index: usize, default: bool) -> bool {
        self.given(index).map_or(default, Value::is_true)
    }

    pub fn integer(&self, index: usize) -> Result<Option<i64>, Error> {
        let Some(value) = self.get(index) else { return Ok(None) };
        if integers::integer(value).is_some() {
            return integers::small(value).map(Some).ok_or_else(|| self.wrong_type(index, value, "64 bits"));
        }
        Err(self.wrong_type(index, value, "an integer"))
    }

    /// A number of things to make, at least 0.
    pub fn count(&self, index: usize, default: usize) -> Result<usize, Error> {
        Ok(self.integer(index)?.map_or(default, |n| n.max(0) as usize))
    }

    pub fn text(&self, index: usize) -> Result<Option<&str>, Error> {
        let Some(value) = self.get(index) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| self.wrong_type(index, value, "a string"))
    }

    pub fn required_text(&self, index: usize) -> Result<&str, Error> {
        let value = self.required(index)?;
        value.as_str().ok_or_else(|| self.wrong_type(index, value, "a string"))
    }

    /// `str(argument)`.
    pub fn as_text(&self, index: usize, default: &str) -> Result<String, Error> {
        self.given(index).map_or_else(|| Ok(default.to_owned()), to_text)
    }
}
