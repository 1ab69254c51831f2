// SPDX-License-Identifier: Apache-2.0
#pragma once

// Key and value rows of one layer of one sequence, addressed by absolute position.
//
// On CPU rows lie in pages of kPageRows positions, aligned to absolute position 0, in 64-byte
// aligned buffers of our own. Pages are shared by reference count: a copy of a store shares all
// pages, and a write to a shared page copies that page first. Old pages can be dropped; positions
// never move. On a GPU rows lie in one contiguous buffer per store (capacity in multiples of 256)
// and a copy copies on the first write.
//
// Threading: one thread (the engine's) calls `prepare`, `drop_before`, copies and destroys; the
// attend task of a pass writes and reads rows on MLX's stream thread. A caller may change a store
// only between passes, after the pass was evaluated. Rows are stored in `dtype`: bf16, or float32
// for float32 checkpoints; or rounded to it and then quantized, in pages only.

#include "saker/kernels/kv_block.h"
#include "saker/kernels/mx.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace saker::kernels {

enum class CodeSide : std::uint8_t;  // cpu/kv_codes.h

struct KvShape {
  int kv_heads = 0;
  int head_dim = 0;        // Of keys.
  int value_head_dim = 0;  // Of values.
  mx::Dtype dtype = mx::bfloat16;
  // 8 or 4: rows are kept as codes of so many bits with a scale and a bias for each group of
  // elements, as mx::quantize makes them; but keys less an offset for each element, which a page's
  // rows share, and the first kPageRows rows as they are (docs/adr/0038-offsets-of-cached-keys.md).
  // 16: as they are.
  int bits = kUnquantizedBits;

  bool operator==(const KvShape&) const = default;
};

// How a store keeps its rows; both give the same rows and, up to rounding, the same attention.
enum class KvLayout : std::uint8_t {
  kPaged,       // For our CPU bodies.
  kContiguous,  // One array per store, for MLX's own attention.
};

// Bytes of one position's keys and values, padding not counted. Throws kInvalidArgument for shapes
// that no store has.
std::size_t kv_row_bytes(const KvShape& shape);

// Rows as mx::quantize gives them, affine: [H_kv, n, D * bits / 32] words, [H_kv, n, D / group]
// scales and biases in the store's dtype. Groups are of 64 elements, of 32 where D is not a
// multiple of 64.
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
  // without memory, and then nothing has changed.
  void prepare(std::int64_t first, int count);
  // Forgets rows below `position` (whole pages only); rows [0, keep) stay.
  void drop_before(std::int64_t position, int keep);
  // Forgets rows at and above `position`.
  void drop_from(std::int64_t position);

  // Rows [first, last) as a store of their own that shares our pages (on a GPU: a copy). Pages that
  // were dropped are absent there too.
  KvStore slice(std::int64_t first, std::int64_t last) const;
  // Rows from `first` on become those of `other`, shared; rows below stay. At most one page is
  // copied: that of `first`, where the two stores do not share it; where we have dropped it, its
  // rows are absent afterwards. Throws kCapacity without memory,
  // and then nothing has changed. REQUIRES: the same shape and layout, `other` has rows from
  // `first` on.
  void adopt(const KvStore& other, std::int64_t first);
  // Whether rows [first, last) are all there.
  bool holds(std::int64_t first, std::int64_t last) const;

  // Writes rows outside of attention (`prepare` comes first): keys [H_kv, n, D], values [H_kv, n,
  // D_v], evaluated, for positions [first, first + n).
  void write(std::int64_t first, const mx::array& keys, const mx::array& values);
  // The same of rows that are codes already, of a quantized store: what they stand for, exactly but
  // for the rounding of the first kPageRows rows to the store's dtype. kInvalidArgument for other
  // bits, groups or shapes than the store's.
  void write(std::int64_t first, const QuantizedRows& keys, const QuantizedRows& values);
  // Rows [first, first + count) in time order, [H_kv, count, D], in the store's dtype, codes as
  // what they stand for; throws kInternal for rows that are gone.
  mx::array keys(std::int64_t first, int count) const;
  mx::array values(std::int64_t first, int count) const;
  // The same rows of a quantized store in MLX's layout, quantized anew where a page keeps them in
  // another form; kUnsupported for dimensions that MLX does not quantize (not a multiple of 32).
  QuantizedRows quantized_keys(std::int64_t first, int count) const;
  QuantizedRows quantized_values(std::int64_t first, int count) const;

  // Bytes held, shared pages counted whole.
  std::size_t nbytes() const;
  // The memory behind them, in order of positions.
  void for_each_block(const BlockVisitor& visit) const;
  // Adds a page behind all others, filled by `read` with what `for_each_block` gave. Throws
  // kCorruptData for one of another size or order, kCapacity without memory, and what `read`
  // throws; then nothing has changed. Pages only: kUnsupported otherwise.
  void add_block(std::int64_t index, std::size_t bytes, const BlockReader& read);

  Storage& storage() const { return *storage_; }

 private:
  QuantizedRows quantized_rows(CodeSide side, std::int64_t first, int count) const;
  void write_codes(CodeSide side, std::int64_t first, const QuantizedRows& rows);

  KvShape shape_;
  std::unique_ptr<Storage> storage_;
};

}  // namespace saker::kernels
