// SPDX-License-Identifier: Apache-2.0
//! C ABI over the crates that Saker uses: tokenizers, minijinja (values of templates), regex, blake2b_simd, rustyline,
//! indicatif and zip.
//! The functions are declared and documented in include/saker_rs.h.

mod added_tokens;
mod archive;
mod detokenizer;
mod ffi;
mod hash;
mod line_editor;
mod memory;
mod pattern;
mod progress;
mod template;
mod tokenizer;
