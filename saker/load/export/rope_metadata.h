// SPDX-License-Identifier: Apache-2.0
#pragma once

// The rotary embedding of a configuration as metadata. Pure; any thread.

#include "saker/base/json/json.h"
#include "saker/load/export/family_pairs.h"
#include "saker/load/gguf/gguf_family.h"
#include "saker/models/decoder_config.h"

#include <vector>

namespace saker::load::gguf {

// Adds bases, scaling and the number of elements that rotate. `text` is the configuration of
// `decoder`. Returns the divisors of each pair's
// frequency for the tensor rope_freqs.weight; empty: the file has none. Throws kUnsupported for
// kinds that the family's files cannot describe, kCorruptData for sections that are no numbers.
std::vector<float> add_rope(
    FamilyPairs& pairs, const Family& family, const models::DecoderConfig& decoder, const Json& text
);

}  // namespace saker::load::gguf
