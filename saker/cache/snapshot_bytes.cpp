// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/snapshot_bytes.h"

#include "saker/base/error.h"

#include <cstring>
#include <utility>

namespace saker::cache {
namespace {

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> take(std::uint64_t count) {
    require(count <= bytes_.size(), ErrorCode::kCorruptData, "[snapshot] the bytes end early");
    const auto taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }

  std::uint64_t number() {
    std::uint64_t value = 0;
    std::memcpy(&value, take(sizeof(value)).data(), sizeof(value));
    return value;
  }

  std::size_t left() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
};

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
    std::span<const std::byte> bytes,
    std::int64_t first,
    std::int64_t last,
    const SequenceCache& cache
) {
  Reader table(bytes);
  const auto layer_count = static_cast<std::uint64_t>(cache.layer_count());
  require(
      table.number() == layer_count,
      ErrorCode::kCorruptData,
      "[snapshot] rows of another number of layers, expected {}",
      layer_count
  );
  std::vector<std::vector<kernels::KvBlock>> layers(layer_count);
  for (auto& blocks : layers) {
    const std::uint64_t count = table.number();
    require(count <= table.left() / 16, ErrorCode::kCorruptData, "[snapshot] the bytes end early");
    blocks.resize(count);
    for (auto& block : blocks) {
      block.index = static_cast<std::int64_t>(table.number());
      block.bytes = table.number();
    }
  }
  Reader pages = table;
  std::vector<LayerSnapshotPtr> rows;
  rows.reserve(layer_count);
  for (int i = 0; i < cache.layer_count(); ++i) {
    auto& blocks = layers[static_cast<std::size_t>(i)];
    for (auto& block : blocks) {
      block.data = pages.take(block.bytes).data();
    }
    rows.push_back(cache.layer(i).snapshot_of(blocks, first, last));
    require(rows.back() != nullptr, ErrorCode::kCorruptData, "[snapshot] rows of another kind");
  }
  require(pages.left() == 0, ErrorCode::kCorruptData, "[snapshot] bytes are left over");
  return SequenceSnapshot(std::move(rows));
}

}  // namespace saker::cache
