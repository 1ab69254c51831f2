// SPDX-License-Identifier: Apache-2.0
#pragma once

// The part of attention's scores that comes from the offsets of a page of codes (code_block.h): for
// each query its product with them, which all keys of the page have in common. Summed over lanes
// element by element, so that no bit depends on the rows beside it.

#include "saker/kernels/attention/code_terms.h"
#include "saker/kernels/attention/products.h"

#include <cstring>

namespace saker::kernels::SAKER_ISA {

// How a query lies in memory, element by element.
enum class QueryForm : std::uint8_t { kFloat, kBf16, kInt16 };

// What the lanes of 16-bit integers are multiplied by: they fill the upper half of 32 bits.
inline constexpr float kInt16Lane = 65536.0F;

// Sixteen integers of 16 bits, times kInt16Lane.
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

// By row of a group: what its queries' product with the block's offsets adds to every score.
struct OffsetScores {
  float rows[kAttendGroupRows];
};

// `stride`: words of 32 bits from one query to the next.
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
