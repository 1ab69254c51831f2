// SPDX-License-Identifier: Apache-2.0
#pragma once

// A prompt-cache file in the form that `saker cache info` prints.

#include "saker/base/json/json.h"
#include "saker/load/prompt_cache.h"

#include <string>

namespace saker::load {

// {"format", "rows", "bytes", "layers": [{"kind", "rows", "shape", "dtype", "meta", "bytes"}, ...],
// "metadata"}. `rows` is layer 0's; shape and dtype are those of its first array.
Json prompt_cache_json(const PromptCache& cache);

// For people: several lines, each with its line end; equal layers share one.
std::string prompt_cache_text(const PromptCache& cache);

}  // namespace saker::load
