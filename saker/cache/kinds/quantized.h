// SPDX-License-Identifier: Apache-2.0
#pragma once

// Kinds whose rows are quantized when they are appended (MLX's affine format).

#include "saker/cache/kinds/cache.h"
#include "saker/cache/kinds/row_buffer.h"

#include <optional>
#include <string_view>

namespace saker::cache::kinds {

struct Quantization {
  int group_size = 64;  // 32, 64 or 128; head dimensions are multiples of it.
  int bits = 8;         // 2, 3, 4, 5, 6 or 8
};

class QuantizedCache : public Cache {
 public:
  int group_size() const { return quantization_.group_size; }

  int bits() const { return quantization_.bits; }

  // Appends rows and gives all that attention reads, quantized.
  virtual QuantizedKeyValues update_quantized(const mx::array& keys, const mx::array& values) = 0;
  // The same without new rows; none when empty.
  virtual std::optional<QuantizedKeyValues> quantized_state() const = 0;

  // As `update_quantized`, all rows turned back to floats: costly.
  KeyValues update(const mx::array& keys, const mx::array& values) final;

 protected:
  // Throws kInvalidArgument for formats that MLX lacks.
  explicit QuantizedCache(const Quantization& quantization);

  const Quantization& quantization() const { return quantization_; }

  void set_quantization(const Quantization& quantization) { quantization_ = quantization; }

  // Throws kCorruptData.
  static Quantization parse_quantization(std::string_view group_size, std::string_view bits);

  // The six parts of rows, checked as check_update does against the parts of `buffer`.
  Parts quantized(
      const mx::array& keys, const mx::array& values, const Parts& buffer, std::int64_t position
  ) const;
  static QuantizedKeyValues key_values(const Parts& parts);
  // Throws kCorruptData unless none or six, of the same rows.
  void check_parts(const Parts& parts) const;

 private:
  Quantization quantization_;
};

class QuantizedKVCache final : public QuantizedCache {
 public:
  explicit QuantizedKVCache(const Quantization& quantization = {}) : QuantizedCache(quantization) {}

  std::string_view kind() const override { return "QuantizedKVCache"; }

  QuantizedKeyValues update_quantized(const mx::array& keys, const mx::array& values) override;
  std::optional<QuantizedKeyValues> quantized_state() const override;

  std::int64_t offset() const override { return offset_; }

  std::vector<mx::array> state() const override;
  // Leaves the offset alone, at most the number of rows.
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

  RowBuffer rows_;
  int offset_ = 0;
};

}  // namespace saker::cache::kinds
