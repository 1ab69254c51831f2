// SPDX-License-Identifier: Apache-2.0
#pragma once

// Left-padded rows of several sequences in one array: batch row b has its first row at index
// left_padding[b]. Positions are kept on the host, so no step waits for a device.
// caches/cache.h has shapes, units, errors and threading.

#include "saker/caches/cache.h"
#include "saker/caches/kv.h"
#include "saker/caches/row_buffer.h"

#include <optional>
#include <span>
#include <vector>

namespace saker::caches {

// Padding of prompts with different lengths, before a right-padded prefill or while empty.
struct Padding {
  std::vector<int> left;     // Empty: none; also below.
  std::vector<int> right;    // `finalize` turns it into left padding.
  std::vector<int> lengths;  // Prompt lengths; the rotating kind needs them with `right`.
};

// `state`: none, or keys and values with all rows, offset and left_padding, both int32 [B].
class BatchKVCache final : public Cache, public BatchPositioned {
 public:
  // One value per batch row: the number of its rows that are padding.
  explicit BatchKVCache(std::vector<int> left_padding);

  std::string_view kind() const override { return "BatchKVCache"; }

  const std::vector<int>& left_padding() const { return left_padding_; }

  const std::vector<int>& batch_offset() const override { return offset_; }

  // Throws kInvalidArgument for left padding of a cache with rows, and for other batch sizes.
  void prepare(const Padding& padding);
  // Right padding becomes left padding.
  void finalize();

  // Keeps these batch rows, in this order, and drops padding that they all have. Throws
  // kInvalidArgument for no index and for indices out of range.
  void filter(std::span<const int> batch_rows);
  // Appends the other's batch rows; all rows are aligned at their end. Throws kInvalidArgument for
  // other heads or dimensions.
  void extend(const BatchKVCache& other);
  // Returns one batch row without its padding.
  KVCache extract(int batch_row) const;
  // A batch of these sequences, each of one batch row. Throws kInvalidArgument for others.
  // REQUIRES: at least one cache.
  static BatchKVCache merge(std::span<const KVCache* const> caches);

  KeyValues update(const mx::array& keys, const mx::array& values) override;

  // Number of rows held, padding included.
  std::int64_t offset() const override { return idx_; }

  std::vector<mx::array> state() const override;
  void set_state(std::vector<mx::array> arrays) override;

  void materialize() override { rows_.materialize(); }

  bool is_trimmable() const override { return true; }

  int trim(int count) override;
  // Always an array, [B, 1, n, offset + n].
  Mask make_mask(int n, std::optional<int> window = std::nullopt, MaskForm form = MaskForm::kAny)
      const override;

  std::size_t nbytes() const override { return rows_.nbytes(); }

  bool is_empty() const override { return rows_.is_empty(); }

  std::unique_ptr<Cache> copy() const override;

 private:
  void become(Cache& other) override;

  RowBuffer rows_;
  std::vector<int> left_padding_;
  std::vector<int> offset_;
  std::vector<int> right_padding_;  // Until `finalize`.
  int idx_ = 0;
};

}  // namespace saker::caches
