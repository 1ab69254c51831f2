// SPDX-License-Identifier: Apache-2.0
#pragma once

// The part of attention's scores from a page's offsets (code_block.h): each query's product with
// them, common to all keys of the page. Lanes sum element by element, so that no bit depends on the
// rows beside it.

#include "saker/kernels/cpu/attention/code_terms.h"
#include "saker/kernels/cpu/attention/products.h"

#include <cstring>

namespace saker::kernels::SAKER_ISA {

// How a query's elements lie in memory.
enum class QueryForm : std::uint8_t { kFloat, kBf16, kInt16 };

// Factor of int16 lanes, since they fill the upper half of 32 bits.
inline constexpr float kInt16Lane = 65536.0F;

// Sixteen int16, times kInt16Lane.
[[gnu::always_inline]] inline F32x16 load_int16(const std::uint16_t* from) {
  return to_float(as_u32(load_bf16(from)));
}

// Sixteen elements of a query from number `at` on; integers times kInt16Lane.
template <QueryForm form>
[[gnu::always_inline]] inline F32x16 query_lanes(const float* query, int at) {
  if constexpr (form == QueryForm::kFloat) {
    return load(query + at);
  } else {
    const auto* elements = reinterpret_cast<const std::uint16_t*>(query) + at;
    return form == QueryForm::kBf16 ? load_bf16(elements) : load_int16(elements);
  }
}

// By row of a group: its query's product with the block's offsets, added to every score.
struct OffsetScores {
  float rows[kAttendGroupRows];
};

// `stride`: 32-bit words from one query to the next.
template <QueryForm form>
inline OffsetScores offset_scores(
    const AttendShape& shape, const Block& block, const RowGroup& group, int stride
) {
  const CodeBlock& codes = shape.key_codes;
  const auto* offsets = reinterpret_cast<const std::uint16_t*>(block.keys + codes.offsets_at());
  float step = 0.0F;
  std::memcpy(&step, block.keys + codes.step_at(), sizeof(step));
  step /= kInt16Lane;
  OffsetScores scores;
  for (int r = 0; r < group.rows; ++r) {
    const float* query = block.queries + (group.first + r) * stride;
    F32x16 sum = zero();
    for (int d = 0; d < codes.dim; d += kVector) {
      sum = fma(query_lanes<form>(query, d), load_int16(offsets + d), sum);
    }
    scores.rows[r] = reduce_add(sum) * step;
    if constexpr (form == QueryForm::kInt16) {
      const float* terms = block.query_terms + (group.first + r) * query_terms(codes);
      scores.rows[r] *= terms[codes.groups] / kInt16Lane;
    }
  }
  return scores;
}

}  // namespace saker::kernels::SAKER_ISA
