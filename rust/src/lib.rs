// SPDX-License-Identifier: Apache-2.0
//! C ABI over the crates that Saker uses: tokenizers, minijinja, rustyline and indicatif.
//! The functions are declared and documented in include/saker_rs.h.

mod detokenizer;
mod ffi;
mod line_editor;
mod progress;
mod template;
mod tokenizer;
