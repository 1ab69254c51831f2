// SPDX-License-Identifier: Apache-2.0
#pragma once

// The layers' content in one line, for people.

#include "saker/cache/sequence_cache.h"

#include <string>

namespace saker::cache {

// By layer, separated by spaces. "0:kv=N": N rows so far. "1:ssm=(A, B, C)": the shape of a
// recurrent layer's memory, None before its first row. "2:none": a layer without rows or state.
std::string cache_summary(const SequenceCache& cache);

}  // namespace saker::cache
