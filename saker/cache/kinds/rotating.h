// SPDX-License-Identifier: Apache-2.0
#pragma once

// The ring kind, plain and quantized.

#include "saker/cache/kinds/cache.h"
#include "saker/cache/kinds/quantized.h"
#include "saker/cache/kinds/ring.h"

#include <optional>

namespace saker::cache::kinds {

// A ring of the newest rows, and of the first ones.
class RotatingKVCache final : public Cache {
 public:
  // A ring of `max_size` rows; the first `keep` rows always stay.
  explicit RotatingKVCache(int max_size, int keep = 0) : ring_(max_size, keep) {}

  std::string_view kind() const override { return "RotatingKVCache"; }

  KeyValues update(const mx::array& keys, const mx::array& values) override;

  std::int64_t offset() const override { return ring_.offset(); }

  std::optional<int> max_size() const override { return ring_.max_size(); }

  // The valid rows, oldest first; none if empty.
  std::optional<KeyValues> in_time_order() const;

  std::vector<mx::array> state() const override;
  void set_state(std::vector<mx::array> arrays) override;

  std::vector<std::string> meta_state() const override { return ring_.meta_state(); }

  void set_meta_state(const std::vector<std::string>& meta) override { ring_.set_meta_state(meta); }

  void materialize() override { ring_.materialize(); }

  bool is_trimmable() const override { return ring_.is_trimmable(); }

  int trim(int count) override { return ring_.trim(count); }

  Mask make_mask(int n, std::optional<int> window = std::nullopt, MaskForm form = MaskForm::kAny)
      const override {
    return ring_.make_mask(n, window, form);
  }

  std::size_t nbytes() const override { return ring_.buffer().nbytes(); }

  bool is_empty() const override { return ring_.is_empty(); }

  std::unique_ptr<Cache> copy() const override;

 private:
  void become(Cache& other) override;

  Ring ring_;
};

// A ring of quantized rows. No other runtime has this kind, so only Saker reads files with it.
// `state` has the parts of QuantizedKVCache; `meta_state` has the ring's four values, group_size
// and bits.
class QuantizedRotatingKVCache final : public QuantizedCache {
 public:
  // As RotatingKVCache and QuantizedKVCache.
  QuantizedRotatingKVCache(int max_size, int keep, const Quantization& quantization)
      : QuantizedCache(quantization), ring_(max_size, keep) {}

  std::string_view kind() const override { return "QuantizedRotatingKVCache"; }

  QuantizedKeyValues update_quantized(const mx::array& keys, const mx::array& values) override;
  std::optional<QuantizedKeyValues> quantized_state() const override;

  std::int64_t offset() const override { return ring_.offset(); }

  std::optional<int> max_size() const override { return ring_.max_size(); }

  std::vector<mx::array> state() const override;
  void set_state(std::vector<mx::array> arrays) override;
  std::vector<std::string> meta_state() const override;
  void set_meta_state(const std::vector<std::string>& meta) override;

  void materialize() override { ring_.materialize(); }

  bool is_trimmable() const override { return ring_.is_trimmable(); }

  int trim(int count) override { return ring_.trim(count); }

  Mask make_mask(int n, std::optional<int> window = std::nullopt, MaskForm form = MaskForm::kAny)
      const override {
    return ring_.make_mask(n, window, form);
  }

  std::size_t nbytes() const override { return ring_.buffer().nbytes(); }

  bool is_empty() const override { return ring_.is_empty(); }

  std::unique_ptr<Cache> copy() const override;

 private:
  void become(Cache& other) override;

  Ring ring_;
};

}  // namespace saker::cache::kinds
