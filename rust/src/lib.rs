// SPDX-License-Identifier: Apache-2.0
//! C ABI over the crates that Saker uses: tokenizers, minijinja (values of templates), regex, blake2b_simd, rustyline,
//! indicatif and zip. The functions are declared and documented in include/saker_rs.h.

// The one feature that stable Rust lacks (docs/adr/0040-bounds-by-the-allocator.md); .cargo/config.toml allows it.
#![feature(alloc_error_hook)]

mod added_tokens;
mod archive;
mod bounded;
mod bpe_file;
mod c_memory;
mod calm;
mod chat_line;
mod constraint;
mod cuts;
mod detokenizer;
mod ffi;
mod hash;
mod line_editor;
mod marked;
mod memory;
mod pattern;
mod pieces;
mod pieces_scan;
mod progress;
mod reserve;
mod template;
mod token_bytes;
mod tokenizer;
mod words;
