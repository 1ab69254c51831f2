// SPDX-License-Identifier: Apache-2.0
#pragma once

// Slots for arrays [B, ...] that a layer replaces as a whole: states of recurrences and
// convolutions. The positions of padded batch rows are kept on the host. caches/cache.h has units,
// errors and threading.

#include "saker/caches/cache.h"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace saker::caches {

// States that a layer replaces as a whole, one array a slot.
class ArraysCache final : public Cache {
 public:
  // The class that files name.
  enum class Label : std::uint8_t { kArrays, kMamba };

  // Throws kInvalidArgument for more than cache::kMaxCacheSlots slots.
  explicit ArraysCache(
      std::size_t slots, std::vector<int> left_padding = {}, Label label = Label::kArrays
  );

  // Two slots, convolution and recurrence. Older mlx-lm: MambaCache; mlx-lm 0.32.2: ArraysCache.
  static ArraysCache mamba() { return ArraysCache(2, {}, Label::kMamba); }

  std::string_view kind() const override {
    return label_ == Label::kMamba ? "MambaCache" : "ArraysCache";
  }

  std::string_view reference_class_name() const override { return "ArraysCache"; }

  std::size_t slot_count() const { return slots_.size(); }

  // None if the slot is not set. Throws kInvalidArgument for a slot out of range.
  const std::optional<mx::array>& get(std::size_t slot) const;
  // As above for errors, and for an array without axes.
  void set(std::size_t slot, mx::array value);

  // From the first slot that is set, else from left padding or lengths; else 1.
  int batch_size() const;

  // One value per batch row; empty: none.
  const std::vector<int>& left_padding() const { return left_padding_; }

  const std::vector<int>& lengths() const { return lengths_; }

  // For right-padded prompts: the length of each batch row.
  void prepare(std::vector<int> lengths) { lengths_ = std::move(lengths); }

  // Ends a prompt: clears lengths and left padding.
  void finalize();
  // After n rows: shortens lengths and left padding.
  void advance(int n);

  // Keeps these batch rows, in this order. Throws kInvalidArgument for indices out of range.
  void filter(std::span<const int> batch_rows);
  // Appends the other's batch rows. A slot that only one of the two has is zero in the other's
  // rows.
  void extend(const ArraysCache& other);
  // A cache of one batch row.
  ArraysCache extract(int batch_row) const;
  // A batch of the first batch row of each cache. Throws kInvalidArgument for different numbers of
  // slots. REQUIRES: at least one cache.
  static ArraysCache merge(std::span<const ArraysCache* const> caches);

  // Throws kUnsupported: set slots instead.
  KeyValues update(const mx::array& keys, const mx::array& values) override;

  std::int64_t offset() const override { return 0; }

  std::vector<mx::array> state() const override;
  // Takes as many arrays as slots are set; `from_serialized` changes the number.
  void set_state(std::vector<mx::array> arrays) override;
  std::vector<std::string> meta_state() const override;
  void set_meta_state(const std::vector<std::string>& meta) override;
  void materialize() override;

  // Boolean [B, n] from left padding and lengths; none without either.
  Mask make_mask(int n, std::optional<int> window = std::nullopt, MaskForm form = MaskForm::kAny)
      const override;
  std::size_t nbytes() const override;
  bool is_empty() const override;
  std::unique_ptr<Cache> copy() const override;

 private:
  void become(Cache& other) override;

  std::vector<std::optional<mx::array>> slots_;
  std::vector<int> left_padding_;  // Empty: none; also below.
  std::vector<int> lengths_;
  Label label_;
};

}  // namespace saker::caches
