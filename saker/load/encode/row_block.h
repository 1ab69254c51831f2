// SPDX-License-Identifier: Apache-2.0
#pragma once

// The encoders of GGUF's block types behind encode_row(). Each writes one block. Any thread.

#include <cstddef>
#include <span>

namespace saker::load::gguf {

// The columns of a row that become one block.
struct RowBlock {
  std::span<const float> values;
  std::span<const float> importance;  // Empty, or as long as `values`.
  float mean_square = 0.0F;           // The whole row's; set for blocks of 32 with an importance.
};

using BlockEncoder = void (*)(const RowBlock& block, std::byte* to);

// Blocks of 32 with a float16 scale.
void encode_q4_0(const RowBlock& block, std::byte* to);
void encode_q4_1(const RowBlock& block, std::byte* to);
void encode_q5_0(const RowBlock& block, std::byte* to);
void encode_q5_1(const RowBlock& block, std::byte* to);
void encode_q8_0(const RowBlock& block, std::byte* to);

// Blocks of 256 whose groups have scales and minimums.
void encode_q2_k(const RowBlock& block, std::byte* to);
void encode_q4_k(const RowBlock& block, std::byte* to);
void encode_q5_k(const RowBlock& block, std::byte* to);

// Blocks of 256 whose groups have scales alone.
void encode_q3_k(const RowBlock& block, std::byte* to);
void encode_q6_k(const RowBlock& block, std::byte* to);

// Nibbles that name one of 16 values.
void encode_iq4_nl(const RowBlock& block, std::byte* to);
void encode_iq4_xs(const RowBlock& block, std::byte* to);

// Small floats and ternary digits.
void encode_mxfp4(const RowBlock& block, std::byte* to);
void encode_tq1_0(const RowBlock& block, std::byte* to);
void encode_tq2_0(const RowBlock& block, std::byte* to);

}  // namespace saker::load::gguf
