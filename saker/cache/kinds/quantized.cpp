// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/kinds/quantized.h"

#include "saker/base/error.h"
#include "saker/cache/kinds/rows.h"
#include "saker/cache/serialized.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

namespace saker::cache::kinds {
namespace {

constexpr std::size_t kParts = 6;

bool is_known(const Quantization& quantization) {
  const int group = quantization.group_size;
  const int bits = quantization.bits;
  return (group == 32 || group == 64 || group == 128) && bits >= 2 && bits <= 8 && bits != 7;
}

}  // namespace

QuantizedCache::QuantizedCache(const Quantization& quantization) : quantization_(quantization) {
  require(
      is_known(quantization),
      ErrorCode::kInvalidArgument,
      "[QuantizedKVCache] {} bits in groups of {}, expected 2, 3, 4, 5, 6 or 8 in 32, 64 or 128",
      quantization.bits,
      quantization.group_size
  );
}

Quantization QuantizedCache::parse_quantization(
    std::string_view group_size, std::string_view bits
) {
  const Quantization result{
      .group_size = static_cast<int>(meta_integer(group_size, "QuantizedKVCache: group_size")),
      .bits = static_cast<int>(meta_integer(bits, "QuantizedKVCache: bits")),
  };
  require(
      is_known(result),
      ErrorCode::kCorruptData,
      "[QuantizedKVCache] {} bits in groups of {}",
      result.bits,
      result.group_size
  );
  return result;
}

Parts QuantizedCache::quantized(
    const mx::array& keys, const mx::array& values, const Parts& buffer, std::int64_t position
) const {
  check_update(kind(), keys, values, {}, position);
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
    for (mx::array& part : mx::quantize(*rows, group, quantization_.bits)) {
      parts.push_back(std::move(part));
    }
  }
  const Parts held = buffer.empty() ? Parts{} : Parts{buffer[0], buffer[3]};
  check_update(kind(), parts[0], parts[3], held, position);
  return parts;
}

QuantizedKeyValues QuantizedCache::key_values(const Parts& parts) {
  return {{parts[0], parts[1], parts[2]}, {parts[3], parts[4], parts[5]}};
}

void QuantizedCache::check_parts(const Parts& parts) const {
  const auto& first = parts.empty() ? mx::Shape{} : parts.front().shape();
  const bool same = std::ranges::all_of(parts, [&](const mx::array& part) {
    return part.ndim() == 4 && first.size() == 4 &&
           std::equal(first.begin(), first.begin() + 3, part.shape().begin());
  });
  require(
      parts.empty() || (parts.size() == kParts && same),
      ErrorCode::kCorruptData,
      "[{}] {} arrays, expected none or six of the same rows",
      kind(),
      parts.size()
  );
}

KeyValues QuantizedCache::update(const mx::array& keys, const mx::array& values) {
  const QuantizedKeyValues rows = update_quantized(keys, values);
  const auto dequantized = [&](const QuantizedRows& part) {
    return mx::dequantize(
        part.weight, part.scales, part.biases, quantization_.group_size, quantization_.bits
    );
  };
  return {dequantized(rows.keys), dequantized(rows.values)};
}

QuantizedKeyValues QuantizedKVCache::update_quantized(
    const mx::array& keys, const mx::array& values
) {
  const Parts parts = quantized(keys, values, rows_.parts(), offset_);
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
  check_parts(arrays);
  rows_ = RowBuffer(std::move(arrays));
  offset_ = std::min(offset_, rows_.capacity());
}

std::vector<std::string> QuantizedKVCache::meta_state() const {
  return {fmt::to_string(offset_), fmt::to_string(group_size()), fmt::to_string(bits())};
}

void QuantizedKVCache::set_meta_state(const std::vector<std::string>& meta) {
  require(
      meta.size() == 3,
      ErrorCode::kCorruptData,
      "[QuantizedKVCache] {} meta values, expected 3",
      meta.size()
  );
  const Quantization quantization = parse_quantization(meta[1], meta[2]);
  const auto offset = static_cast<int>(meta_integer(meta[0], "QuantizedKVCache: offset"));
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
  return unbounded_mask(n, offset_, window, form);
}

std::unique_ptr<Cache> QuantizedKVCache::copy() const {
  return std::make_unique<QuantizedKVCache>(*this);
}

void QuantizedKVCache::become(Cache& other) {
  *this = dynamic_cast<QuantizedKVCache&>(other);
}

}  // namespace saker::cache::kinds
