// SPDX-License-Identifier: Apache-2.0
#include "saker/caches/rotating.h"

#include "saker/base/error.h"
#include "saker/caches/rows.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace saker::caches {

KeyValues RotatingKVCache::update(const mx::array& keys, const mx::array& values) {
  check_update(kind(), keys, values, ring_.buffer().parts(), ring_.offset());
  ring_.check();
  ring_.append({keys, values});
  const Parts rows = ring_.visible();
  return {rows[0], rows[1]};
}

QuantizedRotatingKVCache RotatingKVCache::to_quantized(const Quantization& quantization) const {
  QuantizedRotatingKVCache result(ring_.max_size(), ring_.keep(), quantization);
  if (const Parts rows = state(); !rows.empty()) {
    result.update_quantized(rows[0], rows[1]);
    std::vector<std::string> meta = ring_.meta_state();
    meta.push_back(fmt::to_string(quantization.group_size));
    meta.push_back(fmt::to_string(quantization.bits));
    result.set_meta_state(meta);
  }
  return result;
}

std::optional<KeyValues> RotatingKVCache::in_time_order() const {
  if (ring_.is_empty() || ring_.offset() == 0) {
    return std::nullopt;
  }
  const Parts rows = ring_.in_time_order();
  return KeyValues{rows[0], rows[1]};
}

std::vector<mx::array> RotatingKVCache::state() const {
  return ring_.is_empty() || ring_.offset() == 0 ? Parts{} : ring_.visible();
}

void RotatingKVCache::set_state(std::vector<mx::array> arrays) {
  check_pair(kind(), arrays);
  ring_.assign(std::move(arrays));
}

std::unique_ptr<Cache> RotatingKVCache::copy() const {
  return std::make_unique<RotatingKVCache>(*this);
}

void RotatingKVCache::become(Cache& other) {
  *this = dynamic_cast<RotatingKVCache&>(other);
}

QuantizedKeyValues QuantizedRotatingKVCache::update_quantized(
    const mx::array& keys, const mx::array& values
) {
  const Parts parts = quantized(keys, values, ring_.buffer().parts(), ring_.offset());
  ring_.check();
  if (lacks_biases(ring_.buffer().parts())) {
    ring_.assign(with_biases(ring_.buffer().parts()));
  }
  ring_.append(parts);
  return key_values(ring_.visible());
}

std::optional<QuantizedKeyValues> QuantizedRotatingKVCache::quantized_state() const {
  if (ring_.is_empty() || ring_.offset() == 0) {
    return std::nullopt;
  }
  return key_values(ring_.visible());
}

std::vector<mx::array> QuantizedRotatingKVCache::state() const {
  return ring_.is_empty() || ring_.offset() == 0 ? Parts{} : ring_.visible();
}

void QuantizedRotatingKVCache::set_state(std::vector<mx::array> arrays) {
  accept_parts(arrays);
  ring_.assign(std::move(arrays));
}

std::vector<std::string> QuantizedRotatingKVCache::meta_state() const {
  auto meta = ring_.meta_state();
  meta.push_back(fmt::to_string(quantization().group_size));
  meta.push_back(fmt::to_string(quantization().bits));
  return meta;
}

void QuantizedRotatingKVCache::set_meta_state(const std::vector<std::string>& meta) {
  require(
      meta.size() == 6,
      ErrorCode::kCorruptData,
      "[QuantizedRotatingKVCache] {} meta values, expected 6",
      meta.size()
  );
  const Quantization quantization = parse_quantization(meta[4], meta[5], ring_.buffer().parts());
  ring_.set_meta_state({meta.begin(), meta.begin() + 4});
  set_quantization(quantization);
}

std::unique_ptr<Cache> QuantizedRotatingKVCache::copy() const {
  return std::make_unique<QuantizedRotatingKVCache>(*this);
}

void QuantizedRotatingKVCache::become(Cache& other) {
  *this = dynamic_cast<QuantizedRotatingKVCache&>(other);
}

}  // namespace saker::caches
