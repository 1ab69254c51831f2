// SPDX-License-Identifier: Apache-2.0
#pragma once

// The C ABI of the Rust static library `saker_rs`. Only saker/base, saker/text and saker/cli include it. Rules
// for all functions: text is UTF-8 with a length, NUL bytes are ordinary. Input is borrowed for the call only. A
// function that returns false (or kSakerRsLineError) has written `error`, one line of text, and left `out`
// alone. Written objects are freed by the matching *_free. Panics and failed allocations never cross the border:
// they become errors. The error of a machine without memory is kSakerRsNoMemory, or empty if there is not even
// enough for that. Tokenizer, template, pattern and token trie may be used from many threads at once, the other
// objects from one at a time.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct SakerRsBytes {
  uint8_t* data;
  size_t size;
} SakerRsBytes;

typedef struct SakerRsIds {
  uint32_t* data;
  size_t size;
} SakerRsIds;

static const char kSakerRsNoMemory[] = "there is not enough memory";

void saker_rs_bytes_free(SakerRsBytes bytes);
void saker_rs_ids_free(SakerRsIds ids);

// ---- tokenizer.json ----
// Files come from strangers: loading, encoding and decoding are bounded in time and memory.
typedef struct SakerRsTokenizer SakerRsTokenizer;

// `json` is the content of a tokenizer.json. `other_files`, which may be empty, is a JSON object
// about the tokens in the files beside it (rust/src/added_tokens.rs).
bool saker_rs_tokenizer_new(
    const uint8_t* json,
    size_t size,
    const uint8_t* other_files,
    size_t other_size,
    SakerRsTokenizer** out,
    SakerRsBytes* error
);
void saker_rs_tokenizer_free(SakerRsTokenizer* tokenizer);
// Once there are more than `most_ids`, the rest of a long text may be missing.
bool saker_rs_tokenizer_encode(
    const SakerRsTokenizer* tokenizer,
    const uint8_t* text,
    size_t size,
    bool add_special_tokens,
    size_t most_ids,
    SakerRsIds* out,
    SakerRsBytes* error
);

// Bytes `begin` to `end` of a text stand for the token `id`.
typedef struct SakerRsMark {
  size_t begin;
  size_t end;
  uint32_t id;
} SakerRsMark;

// Names of tokens are text, but for the marks, which are ascending and apart.
bool saker_rs_tokenizer_encode_marked(
    const SakerRsTokenizer* tokenizer,
    const uint8_t* text,
    size_t size,
    const SakerRsMark* marks,
    size_t marks_size,
    bool add_special_tokens,
    SakerRsIds* out,
    SakerRsBytes* error
);
// Two texts as the tokenizer joins them. `places` has for each token twice its type, and 1 more if
// it belongs to the second text.
bool saker_rs_tokenizer_encode_pair(
    const SakerRsTokenizer* tokenizer,
    const uint8_t* first,
    size_t first_size,
    const uint8_t* second,
    size_t second_size,
    SakerRsIds* ids,
    SakerRsIds* places,
    SakerRsBytes* error
);
// Skips ids without a token.
bool saker_rs_tokenizer_decode(
    const SakerRsTokenizer* tokenizer,
    const uint32_t* ids,
    size_t size,
    bool skip_special_tokens,
    SakerRsBytes* out,
    SakerRsBytes* error
);
// Number of tokens, added ones included.
size_t saker_rs_tokenizer_vocab_size(const SakerRsTokenizer* tokenizer);
// False if there is no such token.
bool saker_rs_tokenizer_token_id(
    const SakerRsTokenizer* tokenizer, const uint8_t* text, size_t size, uint32_t* out
);
// What the token adds to a text, a special one as its name is written; empty if there is no such id.
bool saker_rs_tokenizer_bytes(
    const SakerRsTokenizer* tokenizer, uint32_t id, SakerRsBytes* out, SakerRsBytes* error
);
// The token as the vocabulary writes it. If there is no such id, `found` is false and `out` empty.
bool saker_rs_tokenizer_piece(
    const SakerRsTokenizer* tokenizer,
    uint32_t id,
    bool* found,
    SakerRsBytes* out,
    SakerRsBytes* error
);
// One line about tokens with another id than other files give; empty without such tokens.
bool saker_rs_tokenizer_moved(
    const SakerRsTokenizer* tokenizer, SakerRsBytes* out, SakerRsBytes* error
);
bool saker_rs_tokenizer_is_special(const SakerRsTokenizer* tokenizer, uint32_t id);

// ---- streaming decode ----
typedef struct SakerRsDetokenizer SakerRsDetokenizer;

// The tokenizer may be freed before the detokenizer.
bool saker_rs_detokenizer_new(
    const SakerRsTokenizer* tokenizer,
    bool skip_special_tokens,
    SakerRsDetokenizer** out,
    SakerRsBytes* error
);
void saker_rs_detokenizer_free(SakerRsDetokenizer* detokenizer);
// The text that `id` makes final. Skips ids without a token.
bool saker_rs_detokenizer_add(
    SakerRsDetokenizer* detokenizer, uint32_t id, SakerRsBytes* out, SakerRsBytes* error
);
// The text still held back. Nothing may be added after it.
bool saker_rs_detokenizer_finish(
    SakerRsDetokenizer* detokenizer, SakerRsBytes* out, SakerRsBytes* error
);

// ---- chat templates ----
typedef struct SakerRsTemplate SakerRsTemplate;

bool saker_rs_template_new(
    const uint8_t* source, size_t size, SakerRsTemplate** out, SakerRsBytes* error
);
void saker_rs_template_free(SakerRsTemplate* chat_template);
// `variables` is a map in CBOR. Time, output and memory are bounded; `milliseconds` is processor time.
bool saker_rs_template_render(
    const SakerRsTemplate* chat_template,
    const uint8_t* variables,
    size_t size,
    uint32_t milliseconds,
    SakerRsBytes* out,
    SakerRsBytes* error
);

// ---- regular expressions of the crate regex, linear in the text ----
typedef struct SakerRsPattern SakerRsPattern;

// False for features that the crate lacks (look-around, backreferences), and for patterns that compile to over a megabyte.
bool saker_rs_pattern_new(
    const uint8_t* text, size_t size, SakerRsPattern** out, SakerRsBytes* error
);
void saker_rs_pattern_free(SakerRsPattern* pattern);
// `out` is true if it matches somewhere in the text.
bool saker_rs_pattern_matches(
    const SakerRsPattern* pattern, const uint8_t* text, size_t size, bool* out, SakerRsBytes* error
);

// ---- BLAKE2b (RFC 7693) without a key ----
typedef struct SakerRsBlake2b SakerRsBlake2b;

// `digest_size` is 1 to 64 bytes. Null if there is no memory.
SakerRsBlake2b* saker_rs_blake2b_new(size_t digest_size);
void saker_rs_blake2b_free(SakerRsBlake2b* hash);
void saker_rs_blake2b_add(SakerRsBlake2b* hash, const uint8_t* data, size_t size);
// The digest of everything added so far, `digest_size` bytes.
void saker_rs_blake2b_digest(const SakerRsBlake2b* hash, uint8_t* digest);

// ---- zip archives ----
typedef struct SakerRsZip SakerRsZip;

// `data` must stay until the archive is freed. Archives whose entries overlap, or unpack to more
// than `most_bytes` together, are errors.
bool saker_rs_zip_open(
    const uint8_t* data, size_t size, uint64_t most_bytes, SakerRsZip** out, SakerRsBytes* error
);
void saker_rs_zip_free(SakerRsZip* zip);
size_t saker_rs_zip_count(const SakerRsZip* zip);
bool saker_rs_zip_name(SakerRsZip* zip, size_t index, SakerRsBytes* out, SakerRsBytes* error);
// All bytes of an entry; its checksum is verified.
bool saker_rs_zip_read(SakerRsZip* zip, size_t index, SakerRsBytes* out, SakerRsBytes* error);

#ifdef __cplusplus
}
#endif
