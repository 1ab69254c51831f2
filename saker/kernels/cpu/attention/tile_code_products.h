// SPDX-License-Identifier: Apache-2.0
#pragma once

// The products of code_products.h for up to 16 rows at a time on AMX tiles (code_tiles.h). Sums of
// integers are exact, so tiles and vectors give the same bits. Few rows, and shapes without tiles,
// use vectors.

#include "saker/kernels/cpu/attention/code_products.h"
#include "saker/kernels/cpu/attention/code_tiles.h"
#include "saker/kernels/cpu/attention/tile_products.h"

namespace saker::kernels::SAKER_ISA {

struct TileCodeProducts : IntegerProducts<1> {
  using Base = IntegerProducts<1>;
  using Registers = TileProducts::Registers;
  static constexpr int kGroupRows = kTileHeight;

  // Behind the pairs for vectors lie the bytes for tiles, kTileElements elements at a time.
  static void load_query(const AttendShape& shape, float* query, float* terms) {
    Base::load_query(shape, query, terms);
    if (!has_tiles(shape.key_codes)) {
      return;
    }
    const auto* integers = reinterpret_cast<const std::uint16_t*>(query);
    auto* words = reinterpret_cast<std::uint32_t*>(query) + shape.query_stride / 2;
    with_bits(shape.key_codes.bits, [&]<int bits>() {
      for (int i = 0; i < shape.query_stride; i += kTileElements) {
        BlockIntegers lanes;
        for (int v = 0; v < kTileElements / kVector; ++v) {
          lanes[v] = shift_right<16>(as_u32(load_bf16(integers + i + v * kVector)));
        }
        store_byte_rows<bits>(lanes, words + i / 2);
      }
    });
  }

  static void score(const AttendShape& shape, const Block& block, const RowGroup& group) {
    if (group.rows <= kCodeRows || !has_tiles(shape.key_codes)) {
      each_few(block, group, [&](const Block& part, const RowGroup& few) {
        Base::score(shape, part, few);
      });
      return;
    }
    with_bits(shape.key_codes.bits, [&]<int bits>() { score_tiles<bits>(shape, block, group); });
  }

  static void add_values(
      const AttendShape& shape, const Block& block, const RowGroup& group, const State& state
  ) {
    if (group.rows <= kCodeRows) {
      Base::add_values(shape, block, group, state);
      return;
    }
    with_bits(shape.value_codes.bits, [&]<int bits>() {
      for (int g = 0; g < shape.value_codes.groups; ++g) {
        add_tiles_of_group<bits>(shape, block, group, state, g);
      }
    });
  }

 private:
  static bool has_tiles(const CodeBlock& codes) {
    return codes.group == kTileElements && codes.dim % kTileElements == 0;
  }

  template <typename Function>
  static void with_bits(int bits, const Function& function) {
    bits == 4 ? function.template operator()<4>() : function.template operator()<8>();
  }

  // Splits the group into parts small enough for vectors.
  template <typename Function>
  static void each_few(const Block& block, const RowGroup& group, const Function& function) {
    for (int row = 0; row < group.rows; row += kCodeRows) {
      Block part = block;
      part.scores += row * kBlock;
      RowGroup few = group;
      few.first += row;
      few.rows = group.rows - row < kCodeRows ? group.rows - row : kCodeRows;
      few.keys += row;
      function(part, few);
    }
  }

  // Takes one group after the other; within a group, sixteen keys at a time.
  template <int kBits>
  static void score_tiles(const AttendShape& shape, const Block& block, const RowGroup& group) {
    constexpr std::ptrdiff_t kLine = kBlock * sizeof(std::uint32_t);  // For all keys.
    constexpr int kVectors = kBlock / kVector;
    const CodeBlock& codes = shape.key_codes;
    const std::ptrdiff_t stride = shape.query_stride * static_cast<std::ptrdiff_t>(sizeof(float));
    const auto* queries =
        reinterpret_cast<const std::byte*>(block.queries) + group.first * stride + stride / 2;
    alignas(64) std::byte scratch[kTileBytes];
    const OffsetScores offsets =
        offset_scores<QueryForm::kInt16>(shape, block, group, shape.query_stride);
    const auto multiply = [&](auto turn, int i, ByteSums(&sums)[2]) {
      const int v = i % kVectors;
      const int first = i / kVectors * kTileElements;
      if (v == 0) {
        load_bytes(queries + 2 * first, stride);
      }
      const std::byte* words = block.keys + kLine * first * kBits / 32 + v * kVector * 4;
      multiply_bytes<turn.kValue>(code_lines<kBits>(words, kLine, scratch), sums);
    };
    const auto add = [&](int i, const ByteSums(&sums)[2]) {
      const int g = i / kVectors;
      const int v = i % kVectors;
      const TermLanes keys = load_bf16_terms(codes, block.keys, g, v);
      for (int r = 0; r < group.rows; ++r) {
        const float* row = block.query_terms + (group.first + r) * query_terms(codes);
        const F32x16 products =
            mul(to_float(integer_sums(sums[0][r], sums[1][r])), broadcast(row[codes.groups]));
        float* score = block.scores + r * kBlock + v * kVector;
        const F32x16 before = g == 0 ? broadcast(offsets.rows[r]) : load(score);
        const F32x16 rest = fma(keys.bias, broadcast(row[g]), before);
        store(score, fma(products, keys.scale, rest));
      }
    };
    take_turns(codes.groups * kVectors, multiply, add);
  }

  // Adds the values' elements of group g.
  template <int kBits>
  static void add_tiles_of_group(
      const AttendShape& shape, const Block& block, const RowGroup& group, const State& state, int g
  ) {
    const CodeBlock& codes = shape.value_codes;
    const CodeWeights weights = round_weights(codes, block, group, g, store_byte_rows<kBits>);
    const std::byte* words = block.values + kBlock * g * codes.group * kBits / 8;
    float* to = state.values + group.first * state.stride + g * codes.group;
    alignas(64) std::byte scratch[kTileBytes];
    load_bytes(reinterpret_cast<const std::byte*>(block.weights), 2 * kTileElements);
    const auto multiply = [&](auto turn, int i, ByteSums(&sums)[2]) {
      const std::byte* at = words + i * kBlock * kVector * kBits / 8;
      multiply_bytes<turn.kValue>(code_lines<kBits>(at, kTileStride, scratch), sums);
    };
    const auto add = [&](int i, const ByteSums(&sums)[2]) {
      for (int r = 0; r < group.rows; ++r) {
        float* sum = to + r * state.stride + i * kVector;
        const F32x16 rest = SAKER_ISA::add(load(sum), broadcast(weights.rests[r]));
        store(
            sum,
            fma(to_float(integer_sums(sums[0][r], sums[1][r])), broadcast(weights.steps[r]), rest)
        );
      }
    };
    take_turns((codes.group_dim(g) + kVector - 1) / kVector, multiply, add);
  }
};

}  // namespace saker::kernels::SAKER_ISA
