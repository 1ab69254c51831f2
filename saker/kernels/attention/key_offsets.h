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

// What the lanes of offsets are multiplied by where they are floats: they fill the upper half of 32
// bits.
inline constexpr float kOffsetLane = 65536.0F;

// Queries that are multiplied together, few enough for their sums to stay in registers.
inline constexpr int kOffsetRows = kWideRegisters ? 4 : 2;

// Sixteen elements of a query from number `at` on.
template <QueryForm form>
[[gnu::always_inline]] inline F32x16 query_lanes(const float* query, int at) {
  if constexpr (form == QueryForm::kFloat) {
    return load(query + at);
  } else {
    static_assert(form == QueryForm::kBf16);
    return load_bf16(reinterpret_cast<const std::uint16_t*>(query) + at);
  }
}

// The product of a query with offsets times kOffsetLane.
template <QueryForm form>
float multiply_offsets(const float* query, const std::uint16_t* offsets, int dim) {
  F32x16 sum = zero();
  for (int d = 0; d < dim; d += kVector) {
    sum = fma(query_lanes<form>(query, d), to_float(as_u32(load_bf16(offsets + d))), sum);
  }
  return reduce_add(sum);
}

#if defined(SAKER_INT16_DOT)
// The products of `rows` queries of integers, `stride` words of 32 bits apart, with offsets. Those
// are 256 times a signed byte plus a byte, so that a lane's sums stay below 2^31 for 4096 elements.
template <int rows>
void multiply_integer_offsets(
    const float* queries, int stride, const std::uint16_t* offsets, int dim, float* products
) {
  const auto* pairs = reinterpret_cast<const std::uint32_t*>(queries);
  const auto* offset_pairs = reinterpret_cast<const std::uint32_t*>(offsets);
  U32x16 high[rows];
  U32x16 low[rows];
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
    high[r] = broadcast_u32(0);
    low[r] = broadcast_u32(0);
  }
  for (int i = 0; i < (dim + 1) / 2; i += kVector) {
    const U32x16 both = load_u32(offset_pairs + i);
    const U32x16 high_bytes = shift_right_int16_pairs<8>(both);
    const U32x16 low_bytes = bit_and(both, broadcast_u32(0x00ff00ffU));
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      const U32x16 query = load_u32(pairs + r * stride + i);
      high[r] = dot_int16_pairs(high[r], query, high_bytes);
      low[r] = dot_int16_pairs(low[r], query, low_bytes);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
    products[r] = reduce_add(fma(to_float(high[r]), broadcast(256.0F), to_float(low[r])));
  }
}
#endif

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
  OffsetScores scores;
  const float* queries = block.queries + group.first * stride;
  if constexpr (form == QueryForm::kInt16) {
    for (int first = 0; first < group.rows; first += kOffsetRows) {
      const int left = group.rows - first;
      with_rows<kOffsetRows>(left < kOffsetRows ? left : kOffsetRows, [&]<int rows>() {
        const float* from = queries + first * stride;
        multiply_integer_offsets<rows>(from, stride, offsets, codes.dim, scores.rows + first);
      });
    }
    for (int r = 0; r < group.rows; ++r) {
      scores.rows[r] *=
          step * block.query_terms[(group.first + r) * query_terms(codes) + codes.groups];
    }
  } else {
    for (int r = 0; r < group.rows; ++r) {
      const float product = multiply_offsets<form>(queries + r * stride, offsets, codes.dim);
      scores.rows[r] = product * (step / kOffsetLane);
    }
  }
  return scores;
}

}  // namespace saker::kernels::SAKER_ISA
