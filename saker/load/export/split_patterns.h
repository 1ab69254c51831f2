// SPDX-License-Identifier: Apache-2.0
#pragma once

// The name in GGUF files for the way in which a tokenizer.json with byte-level BPE splits text into
// words: the inverse of gguf_pre_tokenizer.h. Pure; any thread.

#include "saker/base/json/json.h"

#include <string_view>

namespace saker::load::gguf {

// `tokenizer` is the content of tokenizer.json. Where several names mean one rule, it is the first
// of the table. Throws kUnsupported for patterns without a name, and for steps that GGUF files
// cannot describe.
std::string_view split_name(const Json& tokenizer);

}  // namespace saker::load::gguf
