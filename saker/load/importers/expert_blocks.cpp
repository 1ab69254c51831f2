// SPDX-License-Identifier: Apache-2.0
#include "saker/load/importers/expert_blocks.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <utility>

namespace saker::load::importers {
namespace {

constexpr std::string_view kBlocks = "_blocks";
constexpr std::string_view kScales = "_scales";
constexpr std::string_view kBias = "_bias";
constexpr std::string_view kJoined = "gate_up_proj";
constexpr std::int64_t kBlockBytes = 16;

std::string_view stem_of(std::string_view leaf, std::string_view end) {
  return leaf.substr(0, leaf.size() - end.size());
}

bool belongs(const ModuleParts& parts, std::string_view leaf, std::string_view end) {
  return leaf.ends_with(end) &&
         parts.find(fmt::format("{}{}", stem_of(leaf, end), kBlocks)) != nullptr &&
         parts.find(fmt::format("{}{}", stem_of(leaf, end), kScales)) != nullptr;
}

// One of the projections in a tensor whose rows they have in turns.
struct Turn {
  std::string_view name;
  std::int64_t first = 0;
  std::int64_t step = 1;
};

std::vector<Turn> turns_of(std::string_view stem) {
  if (stem == kJoined) {
    return {{"gate_proj", 0, 2}, {"up_proj", 1, 2}};
  }
  return {{stem, 0, 1}};
}

}  // namespace

bool is_expert_blocks(const ModuleParts& parts, std::string_view leaf) {
  return belongs(parts, leaf, kBlocks);
}

bool is_expert_scales(const ModuleParts& parts, std::string_view leaf) {
  return belongs(parts, leaf, kScales);
}

bool is_expert_bias(const ModuleParts& parts, std::string_view leaf) {
  return belongs(parts, leaf, kBias);
}

std::vector<LazyTensor> from_expert_blocks(const ModuleParts& parts, std::string_view leaf) {
  const std::string_view stem = stem_of(leaf, kBlocks);
  const Tensor& blocks = parts.at(leaf);
  const auto turns = turns_of(stem);
  const auto& shape = blocks.shape;
  if (blocks.dtype != DType::kUInt8 || shape.size() != 4 || shape[3] != kBlockBytes ||
      blocks.element_count() == 0 || shape[1] % turns.front().step != 0) {
    parts.refuse(
        leaf,
        blocks,
        fmt::format("bytes [E, {}N, K/32, {}]", turns.size() > 1 ? "2 " : "", kBlockBytes)
    );
  }
  const Tensor& scales =
      parts.at(fmt::format("{}{}", stem, kScales), {DType::kUInt8}, {shape[0], shape[1], shape[2]});
  std::vector<LazyTensor> result;
  for (const Turn& turn : turns) {
    const std::int64_t own = shape[1] / turn.step;
    const std::string path = fmt::format("{}.{}", parts.path(), turn.name);
    LazyTensor tensor;
    tensor.outputs = {
        {path + ".weight", DType::kUInt32, {shape[0], own, shape[2] * kBlockBytes / 4}},
        {path + ".scales", DType::kUInt8, {shape[0], own, shape[2]}},
    };
    tensor.rows = shape[0] * own;
    tensor.release = release_all({blocks, scales});
    tensor.make = [blocks,
                   scales,
                   turn](std::int64_t first, std::int64_t count, std::span<std::byte* const> to) {
      std::size_t output = 0;
      for (const Tensor* from : {&blocks, &scales}) {
        const std::size_t rows = static_cast<std::size_t>(from->shape[0] * from->shape[1]);
        const std::size_t row_bytes = from->nbytes() / rows;
        std::byte* place = to[output++];
        for (std::int64_t row = first; place != nullptr && row < first + count; ++row) {
          // Experts have whole turns, so the rows of all of them take turns.
          const auto at = static_cast<std::size_t>(row * turn.step + turn.first);
          std::memcpy(place, from->data.get() + at * row_bytes, row_bytes);
          place += row_bytes;
        }
      }
    };
    result.push_back(std::move(tensor));
  }
  return result;
}

std::vector<LazyTensor> from_expert_bias(const ModuleParts& parts, std::string_view leaf) {
  const std::string_view stem = stem_of(leaf, kBias);
  const Tensor& blocks = parts.at(fmt::format("{}{}", stem, kBlocks));
  const Tensor& bias = parts.at(leaf);
  const auto turns = turns_of(stem);
  if (bias.shape.size() != 2 || blocks.shape.size() < 2 || bias.shape[0] != blocks.shape[0] ||
      bias.shape[1] != blocks.shape[1] || bias.element_count() == 0 ||
      bias.shape[1] % turns.front().step != 0) {
    parts.refuse(leaf, bias, "a number for each row of the blocks");
  }
  std::vector<LazyTensor> result;
  for (const Turn& turn : turns) {
    LazyTensor tensor;
    const std::int64_t own = bias.shape[1] / turn.step;
    tensor.outputs = {
        {fmt::format("{}.{}.bias", parts.path(), turn.name), bias.dtype, {bias.shape[0], own}}
    };
    tensor.rows = bias.shape[0];
    tensor.release = bias.release;
    tensor.make =
        [bias, turn, own](std::int64_t first, std::int64_t count, std::span<std::byte* const> to) {
          const std::size_t size = dtype_size(bias.dtype);
          std::byte* place = to[0];
          for (std::int64_t i = first * own; i < (first + count) * own; ++i) {
            const auto at = static_cast<std::size_t>(i * turn.step + turn.first);
            std::memcpy(place, bias.data.get() + at * size, size);
            place += size;
          }
        };
    result.push_back(std::move(tensor));
  }
  return result;
}

}  // namespace saker::load::importers
