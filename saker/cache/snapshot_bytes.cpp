// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/snapshot_bytes.h"

#include "saker/base/error.h"

#include <utility>

namespace saker::cache {
namespace {

std::vector<std::uint64_t> read_numbers(CheckedReader& bytes, std::uint64_t count) {
  require(
      count <= bytes.left() / sizeof(std::uint64_t),
      ErrorCode::kCorruptData,
      "[snapshot] the bytes end early"
  );
  std::vector<std::uint64_t> numbers(count);
  bytes.read(std::as_writable_bytes(std::span(numbers)));
  return numbers;
}

// Most blocks per row: a layer with states has two arrays per state.
constexpr std::uint64_t kMaxBlocks = 2;

// Reads one layer's part of the table: at most `most` blocks.
std::vector<BlockSource::Block> read_blocks(CheckedReader& bytes, std::uint64_t most) {
  const std::uint64_t count = read_numbers(bytes, 1).front();
  require(
      count <= most,
      ErrorCode::kCorruptData,
      "[snapshot] {} pages of a layer, expected at most {}",
      count,
      most
  );
  const std::vector<std::uint64_t> numbers = read_numbers(bytes, 2 * count);
  std::vector<BlockSource::Block> blocks;
  blocks.reserve(count);
  for (std::size_t i = 0; i < numbers.size(); i += 2) {
    blocks.push_back({static_cast<std::int64_t>(numbers[i]), numbers[i + 1]});
  }
  return blocks;
}

}  // namespace

SnapshotBytes to_bytes(const SequenceSnapshot& rows) {
  SnapshotBytes result;
  result.parts.emplace_back();
  result.table.push_back(rows.layers().size());
  for (const auto& layer : rows.layers()) {
    const std::size_t count_at = result.table.size();
    result.table.push_back(0);
    layer->for_each_block([&](const kernels::KvBlock& block) {
      ++result.table[count_at];
      result.table.push_back(static_cast<std::uint64_t>(block.index));
      result.table.push_back(block.bytes);
      result.parts.emplace_back(static_cast<const std::byte*>(block.data), block.bytes);
    });
  }
  result.parts.front() = std::as_bytes(std::span(result.table));
  return result;
}

SequenceSnapshot from_bytes(
    CheckedReader& bytes, std::int64_t first, std::int64_t last, const SequenceCache& cache
) {
  const auto layer_count = static_cast<std::uint64_t>(cache.layer_count());
  require(
      read_numbers(bytes, 1).front() == layer_count,
      ErrorCode::kCorruptData,
      "[snapshot] rows of another number of layers, expected {}",
      layer_count
  );
  std::vector<BlockSource> layers(layer_count);
  for (BlockSource& layer : layers) {
    layer.blocks = read_blocks(bytes, kMaxBlocks * (static_cast<std::uint64_t>(last) + 1));
    layer.read = [&bytes](std::span<std::byte> block) { bytes.read(block); };
  }
  std::vector<LayerSnapshotPtr> rows;
  rows.reserve(layer_count);
  for (int i = 0; i < cache.layer_count(); ++i) {
    rows.push_back(cache.layer(i).snapshot_of(layers[static_cast<std::size_t>(i)], first, last));
    require(rows.back() != nullptr, ErrorCode::kCorruptData, "[snapshot] rows of another kind");
  }
  require(bytes.left() == 0, ErrorCode::kCorruptData, "[snapshot] bytes are left over");
  return SequenceSnapshot(std::move(rows));
}

}  // namespace saker::cache
