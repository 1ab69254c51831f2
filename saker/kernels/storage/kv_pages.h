// SPDX-License-Identifier: Apache-2.0
#pragma once

// Key and value rows in pages of kPageRows positions, aligned to absolute position 0.
//
// A page holds the rows of all KV heads, head by head: first the head's keys, then its values. Odd
// and partial dimensions are padded with zeros inside the page.
//   keys     transposed, so that 16 keys fill vector lanes:
//            bf16 [D / 2][64][2] (a 32-bit lane holds a pair of elements), float32 [D][64]
//   values   in chunks of 16 elements:
//            bf16 [D_v / 16][32][16][2] (a lane holds an element of two keys),
//            float32 [D_v / 16][64][16]
// In a quantized cache both are codes with scales and biases in the same order, see code_block.h.
// Its page 0 is not quantized: the first rows differ from all others and get the most attention.
// Copies of a table share pages by reference count; `prepare` makes pages private before writes.
// Threading: as KvStore.

#include "saker/kernels/layout/code_block.h"
#include "saker/kernels/layout/kv_block.h"
#include "saker/kernels/layout/lanes.h"
#include "saker/kernels/storage/shared_page.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace saker::kernels {

// The shape of a page's rows: a KvShape (kv_store.h) without MLX.
struct KvPageShape {
  int kv_heads = 0;
  int head_dim = 0;
  int value_head_dim = 0;
  bool bf16 = true;  // Else float32.
  int bits = kUnquantizedBits;
  bool values_in_keys = false;
};

// Offsets inside a page, in bytes.
struct KvPageLayout {
  explicit KvPageLayout(const KvPageShape& shape);

  std::size_t keys_at(int head) const { return static_cast<std::size_t>(head) * head_bytes; }

  std::size_t values_at(int head) const { return keys_at(head) + key_bytes; }

  std::size_t page_bytes() const { return keys_at(kv_heads); }

  int kv_heads;
  int head_dim;
  int value_head_dim;
  bool bf16;
  bool values_in_keys;  // Then there is no memory for values, and writing them does nothing.
  CodeBlock key_codes;
  CodeBlock value_codes;
  std::size_t key_bytes;   // Keys of one head.
  std::size_t head_bytes;  // Keys and values of one head.
};

// A page with its layout. `data` is null: no page.
struct KvPage {
  const KvPageLayout* layout = nullptr;
  std::byte* data = nullptr;
};

// Prepares a page of codes for its first row: sets the keys' offsets to the mean of the newest keys
// in the page before. They depend on earlier rows only, so batches, chunks and rollbacks change no
// bit. Does nothing for a page that is not quantized.
void begin_page(const KvPage& page, const KvPage& before, int head);

// Writes one row of `head` into slot `slot` (position modulo kPageRows). Rounds to nearest even for
// bf16, then to codes in a quantized cache.
void write_key(const KvPageLayout& layout, std::byte* page, int head, int slot, const float* row);
void write_value(const KvPageLayout& layout, std::byte* page, int head, int slot, const float* row);
// Writes the values of an even slot and the next one, with the bits of two single writes.
void write_value_pair(
    const KvPageLayout& layout,
    std::byte* page,
    int head,
    int slot,
    const float* first,
    const float* second
);
// Reads one row into `row`, elements in the layout's dtype.
void read_key(
    const KvPageLayout& layout, const std::byte* page, int head, int slot, std::byte* row
);
void read_value(
    const KvPageLayout& layout, const std::byte* page, int head, int slot, std::byte* row
);
// Copies the rows of slots [0, slots) of all heads.
void copy_slots(const KvPageLayout& layout, const std::byte* from, std::byte* to, int slots);

class KvPages {
 public:
  explicit KvPages(const KvPageShape& shape);

  // The layout of all pages except page 0 of a quantized cache.
  const KvPageLayout& layout() const { return layout_; }

  const KvPageLayout& layout(std::int64_t index) const {
    return index == 0 ? first_layout_ : layout_;
  }

  // See KvStore.
  void prepare(std::int64_t first, int count);
  void drop_before(std::int64_t position, int keep);
  void drop_from(std::int64_t position);
  KvPages slice(std::int64_t first, std::int64_t last) const;
  void adopt(const KvPages& other, std::int64_t first);
  bool holds(std::int64_t first, std::int64_t last) const;
  void for_each_block(const BlockVisitor& visit) const;
  void add_page(std::int64_t index, std::size_t bytes, const BlockReader& read);

  std::size_t growth(std::int64_t first, std::int64_t count) const;
  std::size_t bytes_with(std::int64_t row_count) const;
  std::size_t nbytes() const;

  // The position after the last prepared row.
  std::int64_t end() const { return end_; }

  // The page of positions [index * kPageRows, ...), or null.
  std::byte* find(std::int64_t index) const;
  // As `find`, but null if someone else shares the page.
  std::byte* find_private(std::int64_t index) const;

  KvPage page(std::int64_t index) const { return {&layout(index), find(index)}; }

 private:
  struct Entry {
    std::int64_t index;
    SharedPage page;
  };

  KvPages(const KvPageLayout& layout, const KvPageLayout& first)
      : layout_(layout), first_layout_(first) {}

  const Entry* entry(std::int64_t index) const;

  KvPageLayout layout_;
  KvPageLayout first_layout_;
  std::vector<Entry> pages_;  // By index; sparse after drop_before.
  std::int64_t end_ = 0;
};

}  // namespace saker::kernels
