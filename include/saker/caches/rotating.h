// SPDX-License-Identifier: Apache-2.0
#pragma once

// Caches that keep `max_size` rows: the first `keep` of the sequence and the newest ones. For
// layers with a sliding window, and for bounded memory.
//
// caches/cache.h has shapes, units, errors and threading; caches/ring.h has the order of rows.

#include "saker/caches/cache.h"
#include "saker/caches/quantized.h"
#include "saker/caches/ring.h"

#include <optional>

namespace saker::caches {

class QuantizedRotatingKVCache;

// `state`: none, or keys and values. `update` of several rows returns up to max_size - 1 earlier
// rows before them, so that each new row sees max_size rows.
class RotatingKVCache final : public Cache {
 public:
  // Throws kInvalidArgument unless 0 <= keep < max_size, or both are 0.
  explicit RotatingKVCache(int max_size, int keep = 0) : ring_(max_size, keep) {}

  std::string_view kind() const override { return "RotatingKVCache"; }

  KeyValues update(const mx::array& keys, const mx::array& values) override;

  std::int64_t offset() const override { return ring_.offset(); }

  std::optional<int> max_size() const override { return ring_.max_size(); }

  // Number of first rows that stay.
  int keep() const { return ring_.keep(); }

  // A ring of the same rows, quantized, in the same order. Throws as QuantizedCache does.
  QuantizedRotatingKVCache to_quantized(const Quantization& quantization) const;

  // The valid rows, oldest first; none without rows.
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
  // Keeps the first `keep` rows and the newest, `max_size` together. Throws kInvalidArgument for
  // sizes that make no ring and for formats that MLX lacks.
  QuantizedRotatingKVCache(int max_size, int keep, const Quantization& quantization)
      : QuantizedCache(quantization), ring_(max_size, keep) {}

  std::string_view kind() const override { return "QuantizedRotatingKVCache"; }

  // Number of first rows that stay.
  int keep() const { return ring_.keep(); }

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

}  // namespace saker::caches
