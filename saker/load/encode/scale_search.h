// SPDX-License-Identifier: Apache-2.0
#pragma once

// Searches for the scale of a group whose codes have the least weighted error: ggml's searches
// (https://github.com/ggml-org/ggml, ggml-quants.c), with its candidates, order of sums and ties.
// Each also writes a code per value. Groups have 1 to 32 values. Any thread.

#include <cstddef>
#include <cstdint>
#include <span>

namespace saker::load::gguf {

inline constexpr std::size_t kMostGroup = 32;
inline constexpr float kZeroGroup = 1e-15F;  // Groups of smaller values become zeros.

// A value is about scale * code - minimum.
struct Line {
  float scale = 0.0F;
  float minimum = 0.0F;
};

enum class LineError : std::uint8_t { kSquare, kAbsolute };

// Candidate i divides the range from the best candidate's minimum to the largest value in
// `largest` + first + i * step.
struct LineSearch {
  int largest = 0;  // Largest code.
  float first = 0.0F;
  float step = 0.0F;
  int candidates = 0;
  LineError error = LineError::kSquare;
};

// Codes 0 to `largest`; the minimum is 0 or more. REQUIRES: a weight per value.
Line search_line(
    const LineSearch& search,
    std::span<const float> values,
    std::span<const float> weights,
    std::uint8_t* codes
);

// A value is about scale * (code - half), code < 2 * half; the scale may be negative.
// REQUIRES: a weight per value.
float search_signed(
    int half, std::span<const float> values, std::span<const float> weights, std::uint8_t* codes
);

// As search_signed() with squares as weights, but moves one code at a time while that helps.
float refine_signed(int half, std::span<const float> values, std::uint8_t* codes);

// A value is about scale * code. For values of 0 or more; codes of values below 0 wrap.
// REQUIRES: a weight per value.
float search_positive(
    int largest, std::span<const float> values, std::span<const float> weights, std::uint8_t* codes
);

}  // namespace saker::load::gguf
