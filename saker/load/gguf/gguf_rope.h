// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a GGUF file scales rope, in a model folder's configuration. Pure; any thread.

#include "saker/base/json/json.h"
#include "saker/load/gguf/gguf_file.h"
#include "saker/load/gguf/gguf_keys.h"

#include <span>

namespace saker::load::gguf {

// Adds a linear factor or YaRN's. Throws kUnsupported for other scalings.
void add_rope_scaling(const Keys& keys, Json& config);

// The file has factors without their origin: Llama 3's are recognized, others stay a list. Each
// frequency is divided by its own factor, besides a linear factor for all.
void add_rope_factors(const Header& header, std::span<const float> factors, Json& config);

// Factors of rope for all frequencies, whose list the file's context has chosen; none: only the
// length that they begin to matter at.
void add_long_rope(const Header& header, std::span<const float> factors, Json& config);

}  // namespace saker::load::gguf
