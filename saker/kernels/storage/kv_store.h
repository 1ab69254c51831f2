// SPDX-License-Identifier: Apache-2.0
#pragma once

// Key and value rows of one layer of one sequence, addressed by absolute position.
//
// On CPU rows lie in pages of kPageRows positions, aligned to absolute position 0, in our own
// buffers aligned to 64 bytes. Pages are shared by reference count. A copy of a store shares all
// pages; a write to a shared page copies that page first. Old pages can be dropped; positions never
// move. On a GPU rows lie in one contiguous buffer per store (capacity in multiples of 256), and a
// copy of the store copies it on the first write.
//
// Threading: one thread (the engine's) calls `prepare`, `drop_before`, copies and destroys. The
// attend task of a pass writes and reads rows on MLX's stream thread. A caller may change a store
// only between passes, after the pass was evaluated.
//
// Rows are stored in `dtype`: bf16, or float32 for float32 checkpoints. Pages may also quantize
// them after rounding to `dtype`.

#include "saker/kernels/layout/kv_block.h"
#include "saker/kernels/mx.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace saker::kernels {

enum class CodeSide : std::uint8_t;  // storage/kv_codes.h

struct KvShape {
  int kv_heads = 0;
  int head_dim = 0;        // The keys'.
  int value_head_dim = 0;  // The values'.
  mx::Dtype dtype = mx::bfloat16;
  // 16: rows are not quantized. 8 or 4: rows are codes of that many bits with a scale and a bias
  // per group, as mx::quantize makes them. Two exceptions: keys lose an offset per element first,
  // which a page's rows share, and the first kPageRows rows are not quantized
  // (docs/adr/0038-offsets-of-cached-keys.md).
  int bits = kUnquantizedBits;
  // The values are the first elements of the keys and are not stored again. Such rows are not
  // quantized.
  bool values_in_keys = false;

  bool operator==(const KvShape&) const = default;
};

// A store's memory layout. Both give the same rows and, up to rounding, the same attention.
enum class KvLayout : std::uint8_t {
  kPaged,       // For our CPU bodies.
  kContiguous,  // One array per store, for MLX's own attention.
};

// Bytes of one position's keys and values, without padding. Throws kInvalidArgument for shapes that
// no store has.
std::size_t kv_row_bytes(const KvShape& shape);

// Rows in mx::quantize's affine format: [H_kv, n, D * bits / 32] words, [H_kv, n, D / group] scales
// and biases in the store's dtype. A group has 64 elements, or 32 where D is not a multiple of 64.
struct QuantizedRows {
  mx::array codes;
  mx::array scales;
  mx::array biases;
  int bits;
  int group_size;
};

class KvStore {
 public:
  struct Storage;  // Defined in kv_storage.h, for the attend kernel.

  // Pages on CPU, contiguous otherwise.
  explicit KvStore(const KvShape& shape);
  KvStore(const KvShape& shape, KvLayout layout);
  KvStore(const KvStore& other);  // Shares rows; later writes are private.
  KvStore& operator=(const KvStore& other);
  KvStore(KvStore&&) noexcept;
  KvStore& operator=(KvStore&&) noexcept;
  ~KvStore();

  const KvShape& shape() const { return shape_; }

  KvLayout layout() const;

  // Makes rows [first, first + count) writable: allocates and un-shares pages. Throws kCapacity
  // when out of memory; then nothing has changed.
  void prepare(std::int64_t first, int count);
  // Forgets rows below `position` (whole pages only); rows [0, keep) stay.
  void drop_before(std::int64_t position, int keep);
  // Forgets rows at and above `position`.
  void drop_from(std::int64_t position);

  // Rows [first, last) as a new store that shares our pages (on a GPU: a copy). Dropped pages are
  // absent there too.
  KvStore slice(std::int64_t first, std::int64_t last) const;
  // Replaces the rows from `first` on by those of `other`, shared; rows below stay. At most one
  // page is copied: the page of `first`, if the two stores do not share it. If we have dropped that
  // page, its rows are absent afterwards. Throws kCapacity when out of memory; then nothing has
  // changed. REQUIRES: equal shape and layout, and `other` has rows from `first` on.
  void adopt(const KvStore& other, std::int64_t first);
  // True if all rows of [first, last) are present.
  bool holds(std::int64_t first, std::int64_t last) const;

  // Writes rows outside of attention: evaluated keys [H_kv, n, D] and values [H_kv, n, D_v] for
  // positions [first, first + n). REQUIRES: prepared.
  void write(std::int64_t first, const mx::array& keys, const mx::array& values);
  // As above, for a quantized store and rows that are codes already. Their values are kept exactly,
  // except that the first kPageRows rows are rounded to the store's dtype. Throws kInvalidArgument
  // unless bits, groups and shapes are the store's.
  void write(std::int64_t first, const QuantizedRows& keys, const QuantizedRows& values);
  // Rows [first, first + count) in time order, [H_kv, count, D], dequantized to the store's dtype.
  // Throws kInternal for rows that are gone.
  mx::array keys(std::int64_t first, int count) const;
  mx::array values(std::int64_t first, int count) const;
  // Rows of a quantized store in MLX's layout, as for `keys`. They are quantized anew where a page
  // keeps them in another form. Throws kUnsupported for dimensions that MLX does not quantize (not
  // a multiple of 32).
  QuantizedRows quantized_keys(std::int64_t first, int count) const;
  QuantizedRows quantized_values(std::int64_t first, int count) const;

  // Most bytes that `prepare` takes for these rows.
  std::size_t growth(std::int64_t first, std::int64_t count) const;
  // Bytes of a store that holds so many rows, from position 0 on.
  std::size_t bytes_with(std::int64_t row_count) const;
  // Bytes held; shared pages count in full.
  std::size_t nbytes() const;
  // Visits the memory behind the rows, in order of positions.
  void for_each_block(const BlockVisitor& visit) const;
  // Adds a page behind all others. `read` fills it with what `for_each_block` gave. Throws
  // kCorruptData for a wrong size or order, kCapacity when out of memory, or what `read` throws.
  // Then nothing has changed. kUnsupported unless the layout is kPaged.
  void add_block(std::int64_t index, std::size_t bytes, const BlockReader& read);

  Storage& storage() const { return *storage_; }

 private:
  QuantizedRows quantized_rows(CodeSide side, std::int64_t first, int count) const;
  void write_codes(CodeSide side, std::int64_t first, const QuantizedRows& rows);

  KvShape shape_;
  std::unique_ptr<Storage> storage_;
};

}  // namespace saker::kernels
