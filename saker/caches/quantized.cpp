// SPDX-License-Identifier: Apache-2.0
#include "saker/caches/quantized.h"

#include "saker/base/error.h"
#include "saker/cache/serialized.h"
#include "saker/caches/mask.h"
#include "saker/caches/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace saker::caches {
namespace {

constexpr std::size_t kPartsWithBiases = 6;
constexpr std::size_t kPartsWithoutBiases = 4;

// MLX's name of the format; none if MLX lacks it.
std::optional<std::string> mode_of(const Quantization& quantization) {
  const int group = quantization.group_size;
  const int bits = quantization.bits;
  if (quantization.scales == Scales::kFloats) {
    const bool known =
        (group == 32 || group == 64 || group == 128) && bits >= 2 && bits <= 8 && bits != 7;
    return known ? std::optional("affine") : std::nullopt;
  }
  if (group == 16 && bits == 4) {
    return "nvfp4";
  }
  const bool known = group == 32 && (bits == 4 || bits == 8);
  return known ? std::optional(bits == 4 ? "mxfp4" : "mxfp8") : std::nullopt;
}

mx::array dequantized(
    const QuantizedRows& rows, const Quantization& quantization, mx::Dtype dtype
) {
  return mx::dequantize(
      rows.weight,
      rows.scales,
      rows.biases,
      quantization.group_size,
      quantization.bits,
      *mode_of(quantization),
      std::nullopt,
      dtype
  );
}

}  // namespace

QuantizedCache::QuantizedCache(const Quantization& quantization) : quantization_(quantization) {
  require(
      mode_of(quantization).has_value(),
      ErrorCode::kInvalidArgument,
      "[QuantizedKVCache] {} bits in groups of {}, expected 2, 3, 4, 5, 6 or 8 in 32, 64 or 128; "
      "with bytes as scales 4 in 16, or 4 or 8 in 32",
      quantization.bits,
      quantization.group_size
  );
}

Quantization QuantizedCache::parse_quantization(
    std::string_view group_size, std::string_view bits, const Parts& parts
) {
  Quantization result{
      .group_size =
          static_cast<int>(cache::meta_integer(group_size, "QuantizedKVCache: group_size")),
      .bits = static_cast<int>(cache::meta_integer(bits, "QuantizedKVCache: bits")),
  };
  // Without rows only groups of 16 identify a float format.
  const bool bytes = parts.empty() ? result.group_size == 16 : parts[1].dtype() == mx::uint8;
  result.scales = bytes ? Scales::kBytes : Scales::kFloats;
  require(
      mode_of(result).has_value(),
      ErrorCode::kCorruptData,
      "[QuantizedKVCache] {} bits in groups of {}",
      result.bits,
      result.group_size
  );
  return result;
}

std::string QuantizedCache::mode() const {
  const auto mode = mode_of(quantization_);
  require(
      mode.has_value(),
      ErrorCode::kInvalidArgument,
      "[{}] {} bits in groups of {} with bytes as scales, which is no format of MLX's",
      kind(),
      quantization_.bits,
      quantization_.group_size
  );
  return *mode;
}

Parts QuantizedCache::quantized(
    const mx::array& keys, const mx::array& values, const Parts& buffer, std::int64_t position
) const {
  check_update(kind(), keys, values, {}, position);
  const std::string format = mode();
  const int group = quantization_.group_size;
  require(
      keys.shape(3) % group == 0 && values.shape(3) % group == 0,
      ErrorCode::kInvalidArgument,
      "[{}] head dimensions {} and {}, expected multiples of {}",
      kind(),
      keys.shape(3),
      values.shape(3),
      group
  );
  Parts parts;
  for (const mx::array* rows : {&keys, &values}) {
    for (mx::array& part : mx::quantize(*rows, group, quantization_.bits, format)) {
      parts.push_back(std::move(part));
    }
  }
  const Parts held = buffer.empty() ? Parts{} : Parts{buffer[0], buffer[buffer.size() / 2]};
  check_update(kind(), parts[0], parts[parts.size() / 2], held, position);
  return parts;
}

bool QuantizedCache::lacks_biases(const Parts& parts) const {
  return quantization_.scales == Scales::kFloats && parts.size() == kPartsWithoutBiases;
}

Parts QuantizedCache::with_biases(const Parts& parts) {
  return {
      parts[0],
      parts[1],
      mx::zeros_like(parts[1]),
      parts[2],
      parts[3],
      mx::zeros_like(parts[3]),
  };
}

QuantizedKeyValues QuantizedCache::key_values(const Parts& parts) {
  if (parts.size() == kPartsWithoutBiases) {
    return {{parts[0], parts[1], std::nullopt}, {parts[2], parts[3], std::nullopt}};
  }
  return {{parts[0], parts[1], parts[2]}, {parts[3], parts[4], parts[5]}};
}

void QuantizedCache::accept_parts(const Parts& parts) {
  const auto& first = parts.empty() ? mx::Shape{} : parts.front().shape();
  const bool same = std::ranges::all_of(parts, [&](const mx::array& part) {
    return part.ndim() == 4 && first.size() == 4 &&
           std::equal(first.begin(), first.begin() + 3, part.shape().begin());
  });
  if (parts.empty()) {
    return;
  }
  const bool counted = parts.size() == kPartsWithoutBiases || parts.size() == kPartsWithBiases;
  const bool bytes = parts[1 % parts.size()].dtype() == mx::uint8;
  const std::size_t half = parts.size() / 2;
  const bool alike = counted && bytes == (parts[half + 1].dtype() == mx::uint8) &&
                     (!bytes || parts.size() == kPartsWithoutBiases);
  require(
      alike && same,
      ErrorCode::kCorruptData,
      "[{}] {} arrays, expected none, or four or six of the same rows and of one form",
      kind(),
      parts.size()
  );
  quantization_.scales = bytes ? Scales::kBytes : Scales::kFloats;
}

KeyValues QuantizedCache::update(const mx::array& keys, const mx::array& values) {
  const QuantizedKeyValues rows = update_quantized(keys, values);
  return {
      dequantized(rows.keys, quantization_, keys.dtype()),
      dequantized(rows.values, quantization_, values.dtype()),
  };
}

QuantizedKeyValues QuantizedKVCache::update_quantized(
    const mx::array& keys, const mx::array& values
) {
  const Parts parts = quantized(keys, values, rows_.parts(), offset_);
  if (lacks_biases(rows_.parts())) {
    rows_ = RowBuffer(with_biases(rows_.parts()));
  }
  rows_.write(offset_, parts);
  offset_ += keys.shape(2);
  return key_values(rows_of(rows_.parts(), 0, offset_));
}

std::optional<QuantizedKeyValues> QuantizedKVCache::quantized_state() const {
  if (offset_ == 0) {
    return std::nullopt;
  }
  return key_values(rows_of(rows_.parts(), 0, offset_));
}

std::vector<mx::array> QuantizedKVCache::state() const {
  return offset_ == 0 ? Parts{} : rows_of(rows_.parts(), 0, offset_);
}

void QuantizedKVCache::set_state(std::vector<mx::array> arrays) {
  accept_parts(arrays);
  rows_ = RowBuffer(std::move(arrays));
  offset_ = std::min(offset_, rows_.capacity());
}

std::vector<std::string> QuantizedKVCache::meta_state() const {
  return {fmt::to_string(offset_), fmt::to_string(group_size()), fmt::to_string(bits())};
}

void QuantizedKVCache::set_meta_state(const std::vector<std::string>& meta) {
  require(
      meta.size() == 3 || meta.size() == 4,
      ErrorCode::kCorruptData,
      "[QuantizedKVCache] {} meta values, expected 3 or, with mlx-swift's step first, 4",
      meta.size()
  );
  const auto values = std::span(meta).last(3);
  const Quantization quantization = parse_quantization(values[1], values[2], rows_.parts());
  const auto offset = static_cast<int>(cache::meta_integer(values[0], "QuantizedKVCache: offset"));
  require(offset >= 0, ErrorCode::kCorruptData, "[QuantizedKVCache] offset is {}", offset);
  set_quantization(quantization);
  offset_ = std::min(offset, rows_.capacity());
}

int QuantizedKVCache::trim(int count) {
  count = std::clamp(count, 0, offset_);
  offset_ -= count;
  return count;
}

Mask QuantizedKVCache::make_mask(int n, std::optional<int> window, MaskForm form) const {
  return create_attention_mask(n, offset_, window, form);
}

std::unique_ptr<Cache> QuantizedKVCache::copy() const {
  return std::make_unique<QuantizedKVCache>(*this);
}

void QuantizedKVCache::become(Cache& other) {
  *this = dynamic_cast<QuantizedKVCache&>(other);
}

}  // namespace saker::caches
