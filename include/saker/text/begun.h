// SPDX-License-Identifier: Apache-2.0
#pragma once

// Answers that continue an earlier one.

#include <cstdint>

namespace saker::text {

// The part in whose midst such an answer begins.
enum class Begun : std::uint8_t { kNothing, kReasoning, kContent };

}  // namespace saker::text
