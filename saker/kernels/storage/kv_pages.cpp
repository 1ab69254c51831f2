// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/storage/kv_pages.h"

#include "saker/base/error.h"
#include "saker/base/memory.h"
#include "saker/kernels/cpu/simd/bf16.h"
#include "saker/kernels/storage/kv_codes.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

namespace saker::kernels {
namespace {

constexpr int kCacheLine = 64;  // Bytes.

// The element number of (slot, d) among a head's values in float32.
std::size_t value_index(int slot, int d) {
  return (static_cast<std::size_t>(d / kLanes) * kPageRows + slot) * kLanes + d % kLanes;
}

// As above in bf16, where two slots form a pair.
std::size_t paired_value_index(int slot, int d) {
  return value_index(slot / 2 * 2, d / kLanes * kLanes) +
         static_cast<std::size_t>(d % kLanes * 2 + slot % 2);
}

template <typename T>
T* elements(std::byte* bytes) {
  return reinterpret_cast<T*>(bytes);
}

template <typename T>
const T* elements(const std::byte* bytes) {
  return reinterpret_cast<const T*>(bytes);
}

int rounded_up(int count, int step) {
  return (count + step - 1) / step * step;
}

// `codes`: codes of a row including its padding.
CodeBlock code_block(const KvPageShape& shape, CodeSide side, int dim, int codes) {
  CodeBlock block;
  block.bits = shape.bits;
  block.dim = dim;
  block.group = page_group(side, dim, shape.bits);
  block.groups = (dim + block.group - 1) / block.group;
  block.bf16 = shape.bf16;
  block.code_bytes = static_cast<std::size_t>(codes) * kPageRows * shape.bits / 8;
  block.term_bytes = static_cast<std::size_t>(block.groups) * kPageRows * (block.bf16 ? 2 : 4);
  if (side == CodeSide::kKeys) {
    const int bytes = static_cast<int>(block.step_at() - block.offsets_at() + sizeof(float));
    block.offset_bytes = static_cast<std::size_t>(rounded_up(bytes, kCacheLine));
  }
  return block;
}

// Reads a row in the cache's dtype.
void read_codes(
    const CodeBlock& block, CodeSide side, const std::byte* at, int slot, std::byte* row
) {
  for (int d = 0; d < block.dim; ++d) {
    const float value = read_element(block, side, at, slot, d);
    if (block.bf16) {
      elements<std::uint16_t>(row)[d] = to_bf16(value);
    } else {
      elements<float>(row)[d] = value;
    }
  }
}

// The shape of a cache's page 0, which is not quantized.
KvPageShape unquantized(KvPageShape shape) {
  shape.bits = kUnquantizedBits;
  return shape;
}

// The newest keys of a page, whose mean becomes the next page's offsets.
constexpr int kOffsetKeys = 16;

}  // namespace

KvPageLayout::KvPageLayout(const KvPageShape& shape)
    : kv_heads(shape.kv_heads),
      head_dim(shape.head_dim),
      value_head_dim(shape.value_head_dim),
      bf16(shape.bf16),
      values_in_keys(shape.values_in_keys) {
  if (shape.bits != kUnquantizedBits) {
    key_codes = code_block(shape, CodeSide::kKeys, head_dim, rounded_up(head_dim, 32 / shape.bits));
    value_codes =
        code_block(shape, CodeSide::kValues, value_head_dim, rounded_up(value_head_dim, kLanes));
    key_bytes = key_codes.bytes();
    head_bytes = key_bytes + value_codes.bytes();
    return;
  }
  const std::size_t element = bf16 ? 2 : 4;
  const auto rows = static_cast<std::size_t>(rounded_up(head_dim, bf16 ? 2 : 1));
  key_bytes = rows * kPageRows * element;
  const int columns = values_in_keys ? 0 : rounded_up(value_head_dim, kLanes);
  head_bytes = key_bytes + static_cast<std::size_t>(columns) * kPageRows * element;
}

void write_key(const KvPageLayout& layout, std::byte* page, int head, int slot, const float* row) {
  std::byte* base = page + layout.keys_at(head);
  if (layout.key_codes.is_quantized()) {
    write_codes(layout.key_codes, CodeSide::kKeys, base, slot, row);
    return;
  }
  if (!layout.bf16) {
    auto* keys = elements<float>(base) + slot;
    for (int d = 0; d < layout.head_dim; ++d) {
      keys[static_cast<std::size_t>(d) * kPageRows] = row[d];
    }
    return;
  }
  auto* pairs = elements<std::uint32_t>(base) + slot;
  const int whole = layout.head_dim / 2;
  std::array<std::uint32_t, kLanes> words;  // Rounded together, stored far apart.
  for (int first = 0; first < whole; first += kLanes) {
    const int count = std::min(kLanes, whole - first);
    for (int i = 0; i < count; ++i) {
      words[i] = bf16_pair(row[2 * (first + i)], row[2 * (first + i) + 1]);
    }
    for (int i = 0; i < count; ++i) {
      pairs[static_cast<std::size_t>(first + i) * kPageRows] = words[i];
    }
  }
  if (layout.head_dim % 2 != 0) {
    pairs[static_cast<std::size_t>(whole) * kPageRows] = to_bf16(row[2 * whole]);
  }
}

void write_value(
    const KvPageLayout& layout, std::byte* page, int head, int slot, const float* row
) {
  if (layout.values_in_keys) {
    return;
  }
  std::byte* base = page + layout.values_at(head);
  if (layout.value_codes.is_quantized()) {
    write_codes(layout.value_codes, CodeSide::kValues, base, slot, row);
    return;
  }
  for (int d = 0; d < layout.value_head_dim; d += kLanes) {
    const int lanes = std::min(kLanes, layout.value_head_dim - d);
    if (layout.bf16) {
      std::uint16_t* to = elements<std::uint16_t>(base) + paired_value_index(slot, d);
      for (int i = 0; i < lanes; ++i) {
        to[2 * i] = to_bf16(row[d + i]);
      }
    } else {
      std::memcpy(elements<float>(base) + value_index(slot, d), row + d, lanes * sizeof(float));
    }
  }
}

void write_value_pair(
    const KvPageLayout& layout,
    std::byte* page,
    int head,
    int slot,
    const float* first,
    const float* second
) {
  assert(slot % 2 == 0);
  if (layout.value_codes.is_quantized() || !layout.bf16 || layout.values_in_keys) {
    write_value(layout, page, head, slot, first);
    write_value(layout, page, head, slot + 1, second);
    return;
  }
  std::byte* base = page + layout.values_at(head);
  for (int d = 0; d < layout.value_head_dim; d += kLanes) {
    const int lanes = std::min(kLanes, layout.value_head_dim - d);
    std::uint32_t* to = elements<std::uint32_t>(base) + paired_value_index(slot, d) / 2;
    for (int i = 0; i < lanes; ++i) {
      to[i] = bf16_pair(first[d + i], second[d + i]);
    }
  }
}

namespace {

// The first `count` elements of a key that is not quantized.
void read_key_elements(bool bf16, const std::byte* keys, int slot, int count, std::byte* row) {
  for (int d = 0; d < count; ++d) {
    if (bf16) {
      const std::size_t at = (static_cast<std::size_t>(d / 2) * kPageRows + slot) * 2 + d % 2;
      elements<std::uint16_t>(row)[d] = elements<std::uint16_t>(keys)[at];
    } else {
      elements<float>(row)[d] =
          elements<float>(keys)[static_cast<std::size_t>(d) * kPageRows + slot];
    }
  }
}

}  // namespace

void read_key(
    const KvPageLayout& layout, const std::byte* page, int head, int slot, std::byte* row
) {
  const std::byte* base = page + layout.keys_at(head);
  if (layout.key_codes.is_quantized()) {
    read_codes(layout.key_codes, CodeSide::kKeys, base, slot, row);
    return;
  }
  read_key_elements(layout.bf16, base, slot, layout.head_dim, row);
}

void read_value(
    const KvPageLayout& layout, const std::byte* page, int head, int slot, std::byte* row
) {
  if (layout.values_in_keys) {
    const std::byte* keys = page + layout.keys_at(head);
    read_key_elements(layout.bf16, keys, slot, layout.value_head_dim, row);
    return;
  }
  const std::byte* base = page + layout.values_at(head);
  if (layout.value_codes.is_quantized()) {
    read_codes(layout.value_codes, CodeSide::kValues, base, slot, row);
    return;
  }
  for (int d = 0; d < layout.value_head_dim; ++d) {
    if (layout.bf16) {
      elements<std::uint16_t>(row)[d] = elements<std::uint16_t>(base)[paired_value_index(slot, d)];
    } else {
      elements<float>(row)[d] = elements<float>(base)[value_index(slot, d)];
    }
  }
}

namespace {

// Copies the values of slots [0, slots) in one chunk of 16 elements.
void copy_value_slots(const std::byte* from, std::byte* to, bool bf16, int slots) {
  constexpr std::size_t kLine = kLanes * 4UL;  // One slot in float32, two in bf16.
  const std::size_t whole = static_cast<std::size_t>(bf16 ? slots / 2 : slots) * kLine;
  std::memcpy(to, from, whole);
  if (!bf16 || slots % 2 == 0) {
    return;
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    elements<std::uint16_t>(to + whole)[2 * lane] = elements<std::uint16_t>(from + whole)[2 * lane];
  }
}

}  // namespace

void copy_slots(const KvPageLayout& layout, const std::byte* from, std::byte* to, int slots) {
  constexpr std::size_t kKeyLane = 4;  // One element in float32, two in bf16.
  const std::size_t key_line = kPageRows * kKeyLane;
  const std::size_t chunk_bytes = kPageRows * kLanes * (layout.bf16 ? 2UL : 4UL);
  for (int head = 0; head < layout.kv_heads; ++head) {
    const std::size_t keys = layout.keys_at(head);
    if (layout.key_codes.is_quantized()) {
      const std::size_t values = layout.values_at(head);
      copy_code_slots(layout.key_codes, CodeSide::kKeys, from + keys, to + keys, slots);
      copy_code_slots(layout.value_codes, CodeSide::kValues, from + values, to + values, slots);
      continue;
    }
    for (std::size_t at = keys; at < keys + layout.key_bytes; at += key_line) {
      std::memcpy(to + at, from + at, static_cast<std::size_t>(slots) * kKeyLane);
    }
    const std::size_t end = keys + layout.head_bytes;
    for (std::size_t at = layout.values_at(head); at < end; at += chunk_bytes) {
      copy_value_slots(from + at, to + at, layout.bf16, slots);
    }
  }
}

void begin_page(const KvPage& page, const KvPage& before, int head) {
  const KvPageLayout& layout = *page.layout;
  if (!layout.key_codes.has_offsets()) {
    return;
  }
  std::vector<float> mean(layout.head_dim);
  std::vector<std::byte> row(layout.head_dim * (layout.bf16 ? 2UL : 4UL));
  for (int slot = kPageRows - kOffsetKeys; before.data != nullptr && slot < kPageRows; ++slot) {
    read_key(*before.layout, before.data, head, slot, row.data());
    for (int d = 0; d < layout.head_dim; ++d) {
      mean[d] += layout.bf16 ? from_bf16(elements<std::uint16_t>(row.data())[d])
                             : elements<float>(row.data())[d];
    }
  }
  for (float& sum : mean) {
    sum /= kOffsetKeys;
  }
  write_offsets(layout.key_codes, page.data + layout.keys_at(head), mean.data());
}

KvPages::KvPages(const KvPageShape& shape)
    : KvPages(KvPageLayout(shape), KvPageLayout(unquantized(shape))) {}

std::size_t KvPages::growth(std::int64_t first, std::int64_t count) const {
  std::size_t bytes = 0;
  for (std::int64_t row = first; row < first + count; row += kPageRows - row % kPageRows) {
    if (find_private(row / kPageRows) == nullptr) {
      bytes += SharedPage::memory(layout(row / kPageRows).page_bytes());
    }
  }
  return bytes;
}

std::size_t KvPages::bytes_with(std::int64_t row_count) const {
  const std::int64_t pages = (row_count + kPageRows - 1) / kPageRows;
  return pages == 0
             ? 0
             : SharedPage::memory(first_layout_.page_bytes()) +
                   static_cast<std::size_t>(pages - 1) * SharedPage::memory(layout_.page_bytes());
}

std::size_t KvPages::nbytes() const {
  std::size_t bytes = 0;
  for (const Entry& e : pages_) {
    bytes += layout(e.index).page_bytes();
  }
  return bytes;
}

const KvPages::Entry* KvPages::entry(std::int64_t index) const {
  const auto at =
      std::lower_bound(pages_.begin(), pages_.end(), index, [](const Entry& e, std::int64_t i) {
        return e.index < i;
      });
  return at != pages_.end() && at->index == index ? &*at : nullptr;
}

std::byte* KvPages::find(std::int64_t index) const {
  const Entry* found = entry(index);
  return found != nullptr ? found->page.get() : nullptr;
}

std::byte* KvPages::find_private(std::int64_t index) const {
  const Entry* found = entry(index);
  return found != nullptr && found->page.is_private() ? found->page.get() : nullptr;
}

void KvPages::prepare(std::int64_t first, int count) {
  require(
      first >= 0 && count >= 0 && first <= INT64_MAX - count - kPageRows,
      ErrorCode::kInvalidArgument,
      "cache: got {} rows from position {}, expected both at least 0",
      count,
      first
  );
  if (count == 0) {
    return;
  }
  const std::int64_t begin = first / kPageRows;
  const std::int64_t end = (first + count - 1) / kPageRows + 1;
  if (end == begin + 1 && find_private(begin) != nullptr) {
    end_ = std::max(end_, first + count);
    return;
  }
  require(
      // A larger request fails before it touches a page.
      static_cast<std::size_t>(end - begin) <= usable_memory_bytes() / layout_.page_bytes(),
      ErrorCode::kCapacity,
      "cache: {} rows need {} pages of {} bytes, more than this machine's memory",
      count,
      end - begin,
      layout_.page_bytes()
  );
  try {
    // All that can fail comes first; then the table is swapped.
    const auto is_before = [](const Entry& e, std::int64_t i) { return e.index < i; };
    const auto from = std::lower_bound(pages_.begin(), pages_.end(), begin, is_before);
    const auto to = std::lower_bound(from, pages_.end(), end, is_before);
    std::vector<Entry> fresh;
    fresh.reserve(static_cast<std::size_t>(end - begin));
    auto old = from;
    for (std::int64_t index = begin; index < end; ++index) {
      const bool exists = old != to && old->index == index;
      if (exists && old->page.is_private()) {
        fresh.push_back(*old++);
        continue;
      }
      const std::size_t bytes = layout(index).page_bytes();
      SharedPage page(bytes);
      if (exists) {
        std::memcpy(page.get(), old++->page.get(), bytes);
      } else {
        std::memset(page.get(), 0, bytes);
      }
      fresh.push_back({index, std::move(page)});
    }
    const auto at = from - pages_.begin();
    const auto replaced = to - from;
    if (fresh.size() > static_cast<std::size_t>(replaced)) {
      // Grows by half: appending row by row must not copy the table each time.
      const std::size_t needed = pages_.size() + fresh.size() - replaced;
      if (needed > pages_.capacity()) {
        pages_.reserve(std::max(needed, pages_.capacity() + pages_.capacity() / 2));
      }
    }
    const auto place = pages_.erase(pages_.begin() + at, pages_.begin() + at + replaced);
    pages_.insert(
        place, std::make_move_iterator(fresh.begin()), std::make_move_iterator(fresh.end())
    );
  } catch (const std::bad_alloc&) {
    throw Error(
        ErrorCode::kCapacity,
        fmt::format("cache: no memory for {} pages of {} bytes", end - begin, layout_.page_bytes())
    );
  }
  end_ = std::max(end_, first + count);
}

void KvPages::drop_before(std::int64_t position, int keep) {
  const std::int64_t kept = (static_cast<std::int64_t>(keep) + kPageRows - 1) / kPageRows;
  const std::int64_t begin = position / kPageRows;
  std::erase_if(pages_, [&](const Entry& e) { return e.index >= kept && e.index < begin; });
}

void KvPages::drop_from(std::int64_t position) {
  const std::int64_t end = (std::max<std::int64_t>(position, 0) + kPageRows - 1) / kPageRows;
  std::erase_if(pages_, [&](const Entry& e) { return e.index >= end; });
  end_ = std::min(end_, std::max<std::int64_t>(position, 0));
}

KvPages KvPages::slice(std::int64_t first, std::int64_t last) const {
  KvPages part(layout_, first_layout_);
  const std::int64_t begin = first / kPageRows;
  for (const Entry& e : pages_) {
    if (e.index >= begin && e.index * kPageRows < last) {
      part.pages_.push_back(e);
    }
  }
  part.end_ = std::min(end_, last);
  return part;
}

void KvPages::adopt(const KvPages& other, std::int64_t first) {
  const std::int64_t border = first / kPageRows;
  std::vector<Entry> pages;
  pages.reserve(pages_.size() + other.pages_.size());
  std::ranges::copy_if(pages_, std::back_inserter(pages), [&](const Entry& e) {
    return e.index < border;
  });
  const Entry* ours = entry(border);
  for (const Entry& e : other.pages_) {
    const bool mixed = e.index == border && first % kPageRows != 0;
    if (e.index < border || (mixed && ours == nullptr)) {
      continue;  // We lack the first rows of this page, so none of its rows count as present.
    }
    pages.push_back(e);
    if (mixed && ours->page != e.page) {
      const KvPageLayout& of_page = layout(e.index);
      SharedPage page(of_page.page_bytes());
      std::memcpy(page.get(), e.page.get(), of_page.page_bytes());
      copy_slots(of_page, ours->page.get(), page.get(), static_cast<int>(first % kPageRows));
      pages.back().page = std::move(page);
    }
  }
  pages_ = std::move(pages);
  end_ = std::max(first, other.end_);
}

bool KvPages::holds(std::int64_t first, std::int64_t last) const {
  if (first >= last) {
    return true;
  }
  const std::int64_t begin = first / kPageRows;
  const std::int64_t end = (last - 1) / kPageRows + 1;
  const auto is_before = [](const Entry& e, std::int64_t i) { return e.index < i; };
  const auto from = std::lower_bound(pages_.begin(), pages_.end(), begin, is_before);
  const auto to = std::lower_bound(from, pages_.end(), end, is_before);
  return first >= 0 && last <= end_ && to - from == end - begin;
}

void KvPages::for_each_block(const BlockVisitor& visit) const {
  for (const Entry& e : pages_) {
    visit({e.index, e.page.get(), layout(e.index).page_bytes()});
  }
}

void KvPages::add_page(std::int64_t index, std::size_t bytes, const BlockReader& read) {
  const std::int64_t after = pages_.empty() ? 0 : pages_.back().index + 1;
  require(
      index >= after && index < INT64_MAX / kPageRows - 1 && bytes == layout(index).page_bytes(),
      ErrorCode::kCorruptData,
      "cache: got page {} of {} bytes, expected one from {} on of {} bytes",
      index,
      bytes,
      after,
      layout(index).page_bytes()
  );
  SharedPage page(bytes);
  read({page.get(), bytes});
  pages_.push_back({index, std::move(page)});
  end_ = (index + 1) * kPageRows;
}

}  // namespace saker::kernels
