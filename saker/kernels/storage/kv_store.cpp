// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/storage/kv_store.h"

#include "saker/base/error.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/storage/coded_rows.h"
#include "saker/kernels/storage/kv_codes.h"
#include "saker/kernels/storage/kv_storage.h"

#include <cstddef>
#include <new>
#include <utility>
#include <variant>

namespace saker::kernels {
namespace {

// Larger than any model's; keeps sizes far from overflow.
constexpr int kMaxHeads = 1 << 12;
constexpr int kMaxHeadDim = 1 << 12;

KvShape checked(const KvShape& shape) {
  require(
      shape.kv_heads >= 1 && shape.kv_heads <= kMaxHeads && shape.head_dim >= 1 &&
          shape.head_dim <= kMaxHeadDim && shape.value_head_dim >= 1 &&
          shape.value_head_dim <= kMaxHeadDim,
      ErrorCode::kInvalidArgument,
      "cache: got {} kv heads of dimensions {} and {}, expected 1 to {}",
      shape.kv_heads,
      shape.head_dim,
      shape.value_head_dim,
      kMaxHeadDim
  );
  require(
      shape.dtype == mx::bfloat16 || shape.dtype == mx::float32,
      ErrorCode::kInvalidArgument,
      "cache: rows must be bfloat16 or float32"
  );
  require(
      is_kv_bits(shape.bits) && shape.bits != kFloat32Bits,
      ErrorCode::kInvalidArgument,
      "cache: got {} bits, expected 4, 8 or {}",
      shape.bits,
      kUnquantizedBits
  );
  require(
      !shape.values_in_keys || shape.value_head_dim <= shape.head_dim,
      ErrorCode::kInvalidArgument,
      "cache: got values of {} elements inside of keys of {}",
      shape.value_head_dim,
      shape.head_dim
  );
  require(
      !shape.values_in_keys || shape.bits == kUnquantizedBits,
      ErrorCode::kUnsupported,
      "cache: got {} bits for rows that are keys and values at once, expected {}",
      shape.bits,
      kUnquantizedBits
  );
  return shape;
}

KvPageShape page_shape(const KvShape& shape) {
  return {
      shape.kv_heads,
      shape.head_dim,
      shape.value_head_dim,
      shape.dtype == mx::bfloat16,
      shape.bits,
      shape.values_in_keys,
  };
}

KvStore::Storage make_storage(const KvShape& shape, KvLayout layout) {
  if (layout == KvLayout::kPaged) {
    return {KvPages(page_shape(shape))};
  }
  require(
      shape.bits == kUnquantizedBits,
      ErrorCode::kUnsupported,
      "cache: rows of {} bits are kept on the CPU only",
      shape.bits
  );
  return {KvBuffer(shape)};
}

// [heads, count, width] in the store's dtype; `read` reads each row from its page.
template <typename Read>
mx::array gather(
    const KvPages& pages, const KvShape& shape, mx::Shape result, std::int64_t first, Read read
) {
  const std::size_t row_bytes = static_cast<std::size_t>(result[2]) * mx::size_of(shape.dtype);
  const std::size_t count = static_cast<std::size_t>(result[1]);
  mx::array out(mx::allocator::malloc(count * row_bytes * shape.kv_heads), result, shape.dtype);
  auto* data = out.data<std::byte>();
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t position = first + static_cast<std::int64_t>(i);
    const std::byte* page = pages.find(position / kPageRows);
    require(page != nullptr, ErrorCode::kInternal, "cache: row {} is gone", position);
    for (int head = 0; head < shape.kv_heads; ++head) {
      const int slot = static_cast<int>(position % kPageRows);
      const KvPageLayout& layout = pages.layout(position / kPageRows);
      read(layout, page, head, slot, data + (head * count + i) * row_bytes);
    }
  }
  return out;
}

void check_range(std::int64_t first, int count, std::int64_t begin, std::int64_t end) {
  require(
      count >= 0 && first >= begin && first <= end - count,
      ErrorCode::kInternal,
      "cache: got {} rows from {}, expected rows within {} to {}",
      count,
      first,
      begin,
      end
  );
}

}  // namespace

std::size_t kv_row_bytes(const KvShape& shape) {
  const KvShape row = checked(shape);
  const auto bytes = [&](int dim) {
    const std::size_t elements = static_cast<std::size_t>(dim) * row.kv_heads;
    if (row.bits == kUnquantizedBits) {
      return elements * row.dtype.size();
    }
    return elements * row.bits / 8;
  };
  const std::size_t values = row.values_in_keys ? 0 : bytes(row.value_head_dim);
  const std::size_t elements = bytes(row.head_dim) + values;
  if (row.bits == kUnquantizedBits) {
    return elements;
  }
  // Scales, biases and a page's offsets.
  const KvPageLayout layout(page_shape(row));
  const std::size_t terms = layout.key_codes.bytes() - layout.key_codes.code_bytes +
                            layout.value_codes.bytes() - layout.value_codes.code_bytes;
  return elements + (row.kv_heads * terms + kPageRows - 1) / kPageRows;
}

KvStore::KvStore(const KvShape& shape)
    : KvStore(shape, on_cpu() ? KvLayout::kPaged : KvLayout::kContiguous) {}

KvStore::KvStore(const KvShape& shape, KvLayout layout)
    : shape_(checked(shape)), storage_(std::make_unique<Storage>(make_storage(shape_, layout))) {}

KvStore::KvStore(const KvStore& other)
    : shape_(other.shape_), storage_(std::make_unique<Storage>(*other.storage_)) {}

KvStore& KvStore::operator=(const KvStore& other) {
  *this = KvStore(other);
  return *this;
}

KvStore::KvStore(KvStore&&) noexcept = default;
KvStore& KvStore::operator=(KvStore&&) noexcept = default;
KvStore::~KvStore() = default;

KvLayout KvStore::layout() const {
  return storage_->pages() != nullptr ? KvLayout::kPaged : KvLayout::kContiguous;
}

void KvStore::prepare(std::int64_t first, int count) {
  std::visit([&](auto& rows) { rows.prepare(first, count); }, storage_->rows);
}

void KvStore::drop_before(std::int64_t position, int keep) {
  std::visit([&](auto& rows) { rows.drop_before(position, keep); }, storage_->rows);
}

void KvStore::drop_from(std::int64_t position) {
  std::visit([&](auto& rows) { rows.drop_from(position); }, storage_->rows);
}

KvStore KvStore::slice(std::int64_t first, std::int64_t last) const {
  KvStore part(*this);
  std::visit([&](auto& rows) { rows = rows.slice(first, last); }, part.storage_->rows);
  return part;
}

void KvStore::adopt(const KvStore& other, std::int64_t first) {
  require(
      shape_ == other.shape_ && storage_->rows.index() == other.storage_->rows.index(),
      ErrorCode::kInternal,
      "cache: rows of another shape cannot be taken over"
  );
  try {
    std::visit(
        [&]<typename Rows>(Rows& rows) { rows.adopt(std::get<Rows>(other.storage_->rows), first); },
        storage_->rows
    );
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::kCapacity, "cache: no memory to take rows over");
  }
}

bool KvStore::holds(std::int64_t first, std::int64_t last) const {
  return std::visit([&](const auto& rows) { return rows.holds(first, last); }, storage_->rows);
}

std::size_t KvStore::growth(std::int64_t first, std::int64_t count) const {
  return std::visit([&](const auto& rows) { return rows.growth(first, count); }, storage_->rows);
}

std::size_t KvStore::bytes_with(std::int64_t row_count) const {
  return std::visit([&](const auto& rows) { return rows.bytes_with(row_count); }, storage_->rows);
}

std::size_t KvStore::nbytes() const {
  return std::visit([](const auto& rows) { return rows.nbytes(); }, storage_->rows);
}

void KvStore::for_each_block(const BlockVisitor& visit) const {
  std::visit([&](const auto& rows) { rows.for_each_block(visit); }, storage_->rows);
}

void KvStore::add_block(std::int64_t index, std::size_t bytes, const BlockReader& read) {
  auto* pages = storage_->pages();
  require(pages != nullptr, ErrorCode::kUnsupported, "cache: only pages can be added");
  try {
    pages->add_page(index, bytes, read);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::kCapacity, "cache: no memory for a page");
  }
}

void KvStore::write(std::int64_t first, const mx::array& keys, const mx::array& values) {
  const int heads = shape_.kv_heads;
  require(
      keys.ndim() == 3 && values.ndim() == 3 && keys.shape(0) == heads &&
          values.shape(0) == heads && keys.shape(1) == values.shape(1) &&
          keys.shape(2) == shape_.head_dim && values.shape(2) == shape_.value_head_dim,
      ErrorCode::kInvalidArgument,
      "cache: keys or values have the wrong shape, expected [{}, n, {}] and [{}, n, {}]",
      heads,
      shape_.head_dim,
      heads,
      shape_.value_head_dim
  );
  const int count = keys.shape(1);
  const auto* pages = storage_->pages();
  check_range(first, count, 0, pages != nullptr ? pages->end() : storage_->buffer()->end());
  if (pages == nullptr) {
    storage_->buffer()->write(first, mx::expand_dims(keys, 0), mx::expand_dims(values, 0));
    return;
  }
  const auto key_rows = contiguous_float32(keys);
  const auto value_rows = contiguous_float32(values);
  for (int i = 0; i < count; ++i) {
    const std::int64_t index = (first + i) / kPageRows;
    const KvPage page{&pages->layout(index), pages->find_private(index)};
    require(
        page.data != nullptr, ErrorCode::kInternal, "cache: row {} was not prepared", first + i
    );
    const int slot = static_cast<int>((first + i) % kPageRows);
    for (int head = 0; head < heads; ++head) {
      if (slot == 0) {
        begin_page(page, pages->page(index - 1), head);
      }
      const std::size_t row = static_cast<std::size_t>(head) * count + i;
      const float* key = key_rows.data<float>() + row * shape_.head_dim;
      const float* value = value_rows.data<float>() + row * shape_.value_head_dim;
      write_key(*page.layout, page.data, head, slot, key);
      write_value(*page.layout, page.data, head, slot, value);
    }
  }
}

void KvStore::write(std::int64_t first, const QuantizedRows& keys, const QuantizedRows& values) {
  write_codes(CodeSide::kKeys, first, keys);
  write_codes(CodeSide::kValues, first, values);
}

void KvStore::write_codes(CodeSide side, std::int64_t first, const QuantizedRows& rows) {
  auto* pages = storage_->pages();
  require(pages != nullptr, ErrorCode::kUnsupported, "cache: rows are not kept as codes");
  const int count = rows.codes.ndim() == 3 ? rows.codes.shape(1) : 0;
  check_range(first, count, 0, pages->end());
  write_coded_rows(*pages, side, first, rows);
}

mx::array KvStore::keys(std::int64_t first, int count) const {
  if (const auto* pages = storage_->pages(); pages != nullptr) {
    check_range(first, count, 0, pages->end());
    return gather(*pages, shape_, {shape_.kv_heads, count, shape_.head_dim}, first, read_key);
  }
  const auto& buffer = *storage_->buffer();
  check_range(first, count, buffer.begin(), buffer.end());
  return mx::squeeze(buffer.keys(first, first + count), 0);
}

mx::array KvStore::values(std::int64_t first, int count) const {
  if (const auto* pages = storage_->pages(); pages != nullptr) {
    check_range(first, count, 0, pages->end());
    return gather(
        *pages, shape_, {shape_.kv_heads, count, shape_.value_head_dim}, first, read_value
    );
  }
  const auto& buffer = *storage_->buffer();
  check_range(first, count, buffer.begin(), buffer.end());
  return mx::squeeze(buffer.values(first, first + count), 0);
}

QuantizedRows KvStore::quantized_keys(std::int64_t first, int count) const {
  return quantized_rows(CodeSide::kKeys, first, count);
}

QuantizedRows KvStore::quantized_values(std::int64_t first, int count) const {
  return quantized_rows(CodeSide::kValues, first, count);
}

QuantizedRows KvStore::quantized_rows(CodeSide side, std::int64_t first, int count) const {
  const auto* pages = storage_->pages();
  require(pages != nullptr, ErrorCode::kUnsupported, "cache: rows are not kept as codes");
  check_range(first, count, 0, pages->end());
  return read_coded_rows(*pages, side, {first, count}, shape_.dtype);
}

}  // namespace saker::kernels
