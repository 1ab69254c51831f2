// SPDX-License-Identifier: Apache-2.0
#pragma once

// Caches that quantize rows as they are appended: a row's codes do not depend on other rows. In
// MLX's affine format a group of elements has a scale and a bias; in its float formats the scale is
// a byte. Affine rows of a state may come without biases. These count as 0; rows appended later have
// their own. caches/cache.h has shapes, units, errors and threading.

#include "saker/caches/cache.h"
#include "saker/caches/row_buffer.h"

#include <optional>
#include <string>
#include <string_view>

namespace saker::caches {

// How a format stores the scales of its groups.
enum class Scales : std::uint8_t {
  kFloats,  // Affine: 2, 3, 4, 5, 6 or 8 bits in groups of 32, 64 or 128.
  kBytes,   // MLX's nvfp4 (4 bits in groups of 16), mxfp4 (4 in 32) and mxfp8 (8 in 32).
};

// A format of quantized rows.
struct Quantization {
  int group_size = 64;  // Head dimensions are multiples of it.
  int bits = 8;
  Scales scales = Scales::kFloats;
};

// The part that both caches of quantized rows share.
class QuantizedCache : public Cache {
 public:
  int group_size() const { return quantization_.group_size; }

  int bits() const { return quantization_.bits; }

  // MLX's name of the format, for mx::quantized_matmul: "affine", "nvfp4", "mxfp4" or "mxfp8".
  // Throws kInvalidArgument if a state and meta values, set separately, are no format together.
  std::string mode() const;

  // Appends rows and returns all rows that attention reads, quantized.
  virtual QuantizedKeyValues update_quantized(const mx::array& keys, const mx::array& values) = 0;
  // As above without new rows; none if empty.
  virtual std::optional<QuantizedKeyValues> quantized_state() const = 0;

  // As `update_quantized`, but dequantizes all rows: costly.
  KeyValues update(const mx::array& keys, const mx::array& values) final;

 protected:
  // Throws kInvalidArgument for formats that MLX lacks.
  explicit QuantizedCache(const Quantization& quantization);

  const Quantization& quantization() const { return quantization_; }

  // The format of rows from now on. REQUIRES: none are held, or they have this format.
  void set_quantization(const Quantization& quantization) { quantization_ = quantization; }

  // Reads meta values for rows of these parts. Throws kCorruptData.
  static Quantization parse_quantization(
      std::string_view group_size, std::string_view bits, const Parts& parts
  );

  // Quantizes rows into parts; checks them against the parts of `buffer` as check_update does.
  Parts quantized(
      const mx::array& keys, const mx::array& values, const Parts& buffer, std::int64_t position
  ) const;
  // True if held rows lack biases that new rows will have.
  bool lacks_biases(const Parts& parts) const;
  // Adds biases of 0 to such rows.
  static Parts with_biases(const Parts& parts);
  // Parts by name.
  static QuantizedKeyValues key_values(const Parts& parts);
  // Takes over the format of these parts. Throws kCorruptData unless there are none, or keys and
  // values of two (weight, scales) or three parts (biases) each, with the same rows.
  void accept_parts(const Parts& parts);

 private:
  Quantization quantization_;
};

// Keeps every row. `state`: none, or weight, scales and biases of the keys, then of the values.
class QuantizedKVCache final : public QuantizedCache {
 public:
  // Throws kInvalidArgument for formats that MLX lacks.
  explicit QuantizedKVCache(const Quantization& quantization = {}) : QuantizedCache(quantization) {}

  std::string_view kind() const override { return "QuantizedKVCache"; }

  QuantizedKeyValues update_quantized(const mx::array& keys, const mx::array& values) override;
  std::optional<QuantizedKeyValues> quantized_state() const override;

  std::int64_t offset() const override { return offset_; }

  std::vector<mx::array> state() const override;
  // Keeps the offset, reduced to the number of rows.
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

}  // namespace saker::caches
