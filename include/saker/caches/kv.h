// SPDX-License-Identifier: Apache-2.0
#pragma once

// Caches that keep all rows, or a chunk's rows, in time order. caches/cache.h has shapes, units,
// errors and threading.

#include "saker/caches/cache.h"
#include "saker/caches/row_buffer.h"

#include <optional>

namespace saker::caches {

struct Quantization;
class QuantizedKVCache;

// Keeps every row. `state`: none, or keys and values [B, H_kv, offset, *].
class KVCache final : public Cache {
 public:
  KVCache() = default;

  std::string_view kind() const override { return "KVCache"; }

  KeyValues update(const mx::array& keys, const mx::array& values) override;

  std::int64_t offset() const override { return offset_; }

  std::vector<mx::array> state() const override;
  // Sets the offset to the number of rows.
  void set_state(std::vector<mx::array> arrays) override;

  // A cache of the same rows, quantized. Throws as QuantizedKVCache does (caches/quantized.h).
  QuantizedKVCache to_quantized(const Quantization& quantization) const;

  void materialize() override { rows_.materialize(); }

  bool is_trimmable() const override { return true; }

  int trim(int count) override;
  Mask make_mask(int n, std::optional<int> window = std::nullopt, MaskForm form = MaskForm::kAny)
      const override;

  std::size_t nbytes() const override { return rows_.nbytes(); }

  bool is_empty() const override { return rows_.is_empty(); }

  std::unique_ptr<Cache> copy() const override;

 private:
  void become(Cache& other) override;

  RowBuffer rows_;
  int offset_ = 0;
};

// For layers that attend within chunks (Llama 4): rows before the current chunk can be dropped.
class ChunkedKVCache final : public Cache {
 public:
  // Throws kInvalidArgument for a chunk size below 0. None and 0: `maybe_trim_front` drops nothing.
  explicit ChunkedKVCache(std::optional<int> chunk_size);

  std::string_view kind() const override { return "ChunkedKVCache"; }

  // Drops rows so that at most `chunk_size` stay; the offset still counts all.
  void maybe_trim_front();

  // None: no bound.
  std::optional<int> chunk_size() const { return chunk_size_; }

  // The position of the first row that is held.
  int start_position() const { return start_; }

  KeyValues update(const mx::array& keys, const mx::array& values) override;

  std::int64_t offset() const override { return offset_; }

  std::vector<mx::array> state() const override;
  // Sets the offset to start_position plus the number of rows.
  void set_state(std::vector<mx::array> arrays) override;
  std::vector<std::string> meta_state() const override;
  void set_meta_state(const std::vector<std::string>& meta) override;

  void materialize() override { rows_.materialize(); }

  bool is_trimmable() const override { return true; }

  int trim(int count) override;
  Mask make_mask(int n, std::optional<int> window = std::nullopt, MaskForm form = MaskForm::kAny)
      const override;

  std::size_t nbytes() const override { return rows_.nbytes(); }

  bool is_empty() const override { return rows_.is_empty(); }

  std::unique_ptr<Cache> copy() const override;

 private:
  void become(Cache& other) override;

  int held() const { return offset_ - start_; }

  RowBuffer rows_;
  std::optional<int> chunk_size_;
  int offset_ = 0;
  int start_ = 0;
};

}  // namespace saker::caches
