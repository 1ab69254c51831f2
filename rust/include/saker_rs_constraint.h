// SPDX-License-Identifier: Apache-2.0
#pragma once

// Constraints on answers, by the crate llguidance: part of the C ABI of saker_rs, by the rules of
// saker_rs.h. They come from strangers: making one, and each step, is bounded in time and memory. A
// token trie may be used from many threads at once, a constraint from one at a time.

#include "saker_rs.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct SakerRsTokenTrie SakerRsTokenTrie;
typedef struct SakerRsConstraint SakerRsConstraint;

// The tokenizer's tokens, which constraints share; `ends` are the ids that end an answer. The
// tokenizer may be freed before the trie, and the trie before its constraints.
bool saker_rs_token_trie_new(
    const SakerRsTokenizer* tokenizer,
    const uint32_t* ends,
    size_t count,
    SakerRsTokenTrie** out,
    SakerRsBytes* error
);
void saker_rs_token_trie_free(SakerRsTokenTrie* trie);
// `kind`: 0 JSON schema, 1 regular expression, 2 grammar.
bool saker_rs_constraint_new(
    const SakerRsTokenTrie* trie,
    uint32_t kind,
    const uint8_t* text,
    size_t size,
    SakerRsConstraint** out,
    SakerRsBytes* error
);
void saker_rs_constraint_free(SakerRsConstraint* constraint);
// Writes a bit per token that may come next, and whether the text may end instead.
bool saker_rs_constraint_mask(
    SakerRsConstraint* constraint, uint32_t* words, size_t count, bool* may_end, SakerRsBytes* error
);
// The bytes with which every text goes on; it may be that more of them are certain.
bool saker_rs_constraint_forced(
    SakerRsConstraint* constraint, SakerRsBytes* out, SakerRsBytes* error
);
// `complete`: nothing may follow. False for a token that may not come next, and ever after.
bool saker_rs_constraint_accept(
    SakerRsConstraint* constraint, uint32_t id, bool* complete, SakerRsBytes* error
);

#ifdef __cplusplus
}
#endif
