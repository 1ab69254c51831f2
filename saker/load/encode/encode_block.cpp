// SPDX-License-Identifier: Apache-2.0
#include "saker/load/encode/encode_block.h"

#include "saker/kernels/quantize/quantize_loops.h"
#include "saker/load/encode/row_block.h"

#include <cassert>
#include <cstddef>
#include <span>

namespace saker::load::gguf {
namespace {

BlockEncoder encoder_of(TensorType type) {
  switch (type) {
    case TensorType::kQ40:
      return encode_q4_0;
    case TensorType::kQ41:
      return encode_q4_1;
    case TensorType::kQ50:
      return encode_q5_0;
    case TensorType::kQ51:
      return encode_q5_1;
    case TensorType::kQ80:
      return encode_q8_0;
    case TensorType::kQ2K:
      return encode_q2_k;
    case TensorType::kQ3K:
      return encode_q3_k;
    case TensorType::kQ4K:
      return encode_q4_k;
    case TensorType::kQ5K:
      return encode_q5_k;
    case TensorType::kQ6K:
      return encode_q6_k;
    case TensorType::kIq4Nl:
      return encode_iq4_nl;
    case TensorType::kIq4Xs:
      return encode_iq4_xs;
    case TensorType::kMxfp4:
      return encode_mxfp4;
    case TensorType::kTq10:
      return encode_tq1_0;
    case TensorType::kTq20:
      return encode_tq2_0;
    default:
      return nullptr;
  }
}

// Weights of the types with blocks of 32 depend on the whole row.
float mean_square_of(std::span<const float> row) {
  float sum = 0.0F;
  for (const float value : row) {
    sum += value * value;
  }
  return sum / static_cast<float>(row.size());
}

}  // namespace

bool can_encode(TensorType type) {
  return plain_dtype(type).has_value() || encoder_of(type) != nullptr;
}

void encode_row(
    TensorType type, std::span<const float> row, std::span<const float> importance, std::byte* to
) {
  if (const auto plain = plain_dtype(type)) {
    kernels::quantize_loops().narrow(row.data(), *plain, row.size(), to);
    return;
  }
  const BlockEncoder encode = encoder_of(type);
  const TypeFacts& facts = facts_of(type);
  const auto width = static_cast<std::size_t>(facts.block);
  assert(encode != nullptr && row.size() % width == 0);
  assert(importance.empty() || importance.size() == row.size());
  const bool whole_row = facts.block == 32 && !importance.empty();
  const float mean_square = whole_row ? mean_square_of(row) : 0.0F;
  for (std::size_t at = 0; at < row.size(); at += width, to += facts.block_bytes) {
    const RowBlock block{
        .values = row.subspan(at, width),
        .importance = importance.empty() ? importance : importance.subspan(at, width),
        .mean_square = mean_square,
    };
    encode(block, to);
  }
}

}  // namespace saker::load::gguf
