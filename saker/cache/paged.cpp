// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/paged.h"

#include "saker/base/error.h"
#include "saker/cache/row_snapshot.h"
#include "saker/kernels/storage/kv_codes.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace saker::cache {
namespace {

// Elements [first, last) of rows.
mx::array elements(const mx::array& rows, int first, int last) {
  mx::Shape begin(rows.ndim(), 0);
  mx::Shape end = rows.shape();
  begin.back() = first;
  end.back() = last;
  return mx::slice(rows, std::move(begin), std::move(end));
}

// Rows with values in their keys are two parts outside, as mlx-lm has them: the values, then the
// keys' other elements.
KeyValues shown(const kernels::KvShape& shape, KeyValues rows) {
  if (!shape.values_in_keys) {
    return rows;
  }
  return {rows.values, elements(rows.keys, shape.value_head_dim, shape.head_dim)};
}

// Elements of both parts.
std::pair<int, int> shown_widths(const kernels::KvShape& shape) {
  const int keys = shape.head_dim;
  const int values = shape.value_head_dim;
  return shape.values_in_keys ? std::pair(values, keys - values) : std::pair(keys, values);
}

// Rows [first, last) of [1, H_kv, S, D], as they are shown, in a store's layout: [H_kv, n, D],
// evaluated.
KeyValues store_rows(const KeyValues& rows, const kernels::KvShape& shape, int first, int last) {
  const mx::Dtype dtype = shape.dtype;
  const auto cut = [&](const mx::array& part) {
    const mx::Shape end = {1, part.shape(1), last, part.shape(3)};
    const auto chosen = mx::slice(part, {0, 0, first, 0}, end);
    return mx::contiguous(mx::astype(mx::squeeze(chosen, 0), dtype));
  };
  KeyValues result = {cut(rows.keys), cut(rows.values)};
  if (shape.values_in_keys) {
    const auto whole = mx::concatenate({result.keys, result.values}, 2);
    result = {whole, result.keys};
  }
  mx::eval(result.keys, result.values);
  return result;
}

}  // namespace

void LayerCache::assign(std::int64_t /*offset*/, const std::optional<KeyValues>& /*rows*/) {
  throw Error(ErrorCode::kUnsupported, fmt::format("[{}] rows cannot be assigned", kind()));
}

void LayerCache::assign(std::int64_t /*offset*/, const QuantizedKeyValues& /*rows*/) {
  throw Error(ErrorCode::kUnsupported, fmt::format("[{}] codes cannot be assigned", kind()));
}

kernels::AttendSpan LayerCache::last_row(int /*row*/) const {
  throw Error(ErrorCode::kUnsupported, fmt::format("[{}] keeps no rows to attend to", kind()));
}

PagedCache::PagedCache(const kernels::KvShape& shape, std::optional<RowBound> bound)
    : store_(std::make_shared<kernels::KvStore>(shape)), bound_(bound) {}

PagedCache::PagedCache(const PagedCache& other)
    : LayerCache(),
      store_(std::make_shared<kernels::KvStore>(*other.store_)),
      bound_(other.bound_),
      offset_(other.committed()) {
  if (offset_ < other.offset_) {
    store_->drop_from(offset_);
  }
}

void PagedCache::check_rows(const mx::array& rows, int head_dim, std::string_view what) const {
  const auto heads = store_->shape().kv_heads;
  const bool fits = rows.ndim() == 4 && rows.shape(0) == 1 && rows.shape(1) == heads &&
                    rows.shape(2) > 0 && rows.shape(3) == head_dim;
  require(
      fits,
      ErrorCode::kInvalidArgument,
      "[{}] {} have shape ({}), expected (1, {}, n, {}) with n > 0",
      kind(),
      what,
      fmt::join(rows.shape(), ", "),
      heads,
      head_dim
  );
}

int PagedCache::check_pair(const mx::array& keys, const mx::array& values) const {
  const auto [key_width, value_width] = shown_widths(store_->shape());
  check_rows(keys, key_width, "keys");
  check_rows(values, value_width, "values");
  require(
      values.shape(2) == keys.shape(2),
      ErrorCode::kInvalidArgument,
      "[{}] {} rows of keys and {} of values",
      kind(),
      keys.shape(2),
      values.shape(2)
  );
  return keys.shape(2);
}

void PagedCache::make_room(int row_count) {
  spdlog::trace("[{}] {} rows at offset {}", kind(), row_count, offset_);
  if (!begun_) {
    drop_old_rows();
  }
  store_->prepare(offset_, row_count);
}

KeyValues PagedCache::update(const mx::array& keys, const mx::array& values) {
  const int count = check_pair(keys, values);
  const auto rows_to_write = store_rows({keys, values}, store_->shape(), 0, count);
  make_room(count);
  store_->write(offset_, rows_to_write.keys, rows_to_write.values);
  offset_ += count;
  if (!bound_) {
    return rows(offset_, offset_);
  }
  // The oldest new row sees recent - 1 rows before itself.
  return rows(offset_, std::int64_t{bound_->recent} - 1 + count);
}

kernels::AttendSpan PagedCache::append(int first_row, int row_count) {
  make_room(row_count);
  const auto span = span_of(first_row, row_count, offset_);
  offset_ += row_count;
  return span;
}

kernels::AttendSpan PagedCache::last_row(int row) const {
  require(
      committed() > 0,
      ErrorCode::kInvalidArgument,
      "[{}] has no rows, expected at least one",
      kind()
  );
  return span_of(row, 1, committed() - 1);
}

kernels::AttendSpan PagedCache::span_of(int first_row, int row_count, std::int64_t first_position)
    const {
  kernels::AttendSpan span;
  span.first_row = first_row;
  span.row_count = row_count;
  span.first_position = first_position;
  span.store = store_;
  if (bound_) {
    span.window = bound_->recent;
    span.keep = bound_->keep;
  }
  return span;
}

KeyValues PagedCache::rows(std::int64_t offset, std::int64_t recent) const {
  const std::int64_t keep = bound_ ? std::min<std::int64_t>(bound_->keep, offset) : 0;
  const std::int64_t first = std::max(keep, offset - recent);
  const auto read = [&](auto part) {
    auto newest = part(first, static_cast<int>(offset - first));
    if (keep > 0 && first == offset) {
      return mx::expand_dims(part(0, static_cast<int>(keep)), 0);
    }
    if (keep > 0) {
      newest = mx::concatenate({part(0, static_cast<int>(keep)), newest}, 1);
    }
    return mx::expand_dims(newest, 0);  // [1, H_kv, S, D]
  };
  return shown(
      store_->shape(),
      {
          read([&](std::int64_t from, int count) { return store_->keys(from, count); }),
          read([&](std::int64_t from, int count) { return store_->values(from, count); }),
      }
  );
}

std::optional<KeyValues> PagedCache::view() const {
  const auto end = committed();
  if (end == 0) {
    return std::nullopt;
  }
  return rows(end, bound_ ? bound_->recent : end);
}

void PagedCache::replace(std::int64_t offset, int count, const WriteRows& write) {
  require(!begun_, ErrorCode::kInternal, "[{}] assign inside of a transaction", kind());
  const auto keep = bound_ ? std::min<std::int64_t>(bound_->keep, offset) : 0;
  const auto expected =
      bound_ ? keep + std::min<std::int64_t>(bound_->recent, offset - keep) : offset;
  require(
      count == expected,
      ErrorCode::kInvalidArgument,
      "[{}] {} rows at offset {}, expected {}",
      kind(),
      count,
      offset,
      expected
  );
  auto store = std::make_shared<kernels::KvStore>(store_->shape());
  const auto write_part = [&](std::int64_t position, int first, int last) {
    if (first < last) {
      store->prepare(position, last - first);
      write(*store, position, first, last);
    }
  };
  const int kept = static_cast<int>(keep);
  write_part(0, 0, kept);
  write_part(offset - (count - kept), kept, count);
  store_ = std::move(store);
  offset_ = offset;
}

void PagedCache::assign(std::int64_t offset, const std::optional<KeyValues>& rows) {
  const int count = rows ? check_pair(rows->keys, rows->values) : 0;
  replace(offset, count, [&](kernels::KvStore& store, std::int64_t position, int first, int last) {
    const auto part = store_rows(*rows, store.shape(), first, last);
    store.write(position, part.keys, part.values);
  });
}

void PagedCache::assign(std::int64_t offset, const QuantizedKeyValues& rows) {
  const auto cut = [](const kernels::QuantizedRows& whole, int first, int last) {
    const auto part = [&](const mx::array& array) {
      const mx::Shape end = {1, array.shape(1), last, array.shape(3)};
      return mx::squeeze(mx::slice(array, {0, 0, first, 0}, end), 0);
    };
    return kernels::QuantizedRows{
        part(whole.codes), part(whole.scales), part(whole.biases), whole.bits, whole.group_size
    };
  };
  const mx::Shape& shape = rows.keys.codes.shape();
  require(
      shape.size() == 4 && shape[0] == 1,
      ErrorCode::kInvalidArgument,
      "[{}] codes have shape ({}), expected one sequence",
      kind(),
      fmt::join(shape, ", ")
  );
  replace(
      offset,
      shape[2],
      [&](kernels::KvStore& store, std::int64_t position, int first, int last) {
        store.write(position, cut(rows.keys, first, last), cut(rows.values, first, last));
      }
  );
}

std::optional<QuantizedKeyValues> PagedCache::quantized_view() const {
  const auto end = committed();
  if (end == 0 || !is_quantized()) {
    return std::nullopt;
  }
  const std::int64_t keep = bound_ ? std::min<std::int64_t>(bound_->keep, end) : 0;
  const std::int64_t first = std::max(keep, bound_ ? end - bound_->recent : 0);
  const auto join = [](const mx::array& kept, const mx::array& newest) {
    return mx::expand_dims(mx::concatenate({kept, newest}, 1), 0);  // [1, H_kv, S, ...]
  };
  const auto read = [&](auto rows) {
    const kernels::QuantizedRows kept = rows(0, static_cast<int>(keep));
    const kernels::QuantizedRows newest = rows(first, static_cast<int>(end - first));
    return kernels::QuantizedRows{
        join(kept.codes, newest.codes),
        join(kept.scales, newest.scales),
        join(kept.biases, newest.biases),
        newest.bits,
        newest.group_size,
    };
  };
  return QuantizedKeyValues{
      read([&](std::int64_t from, int count) { return store_->quantized_keys(from, count); }),
      read([&](std::int64_t from, int count) { return store_->quantized_values(from, count); }),
  };
}

bool PagedCache::is_quantized() const {
  return store_->shape().bits != kernels::kUnquantizedBits;
}

std::vector<std::string> PagedCache::quantization_meta() const {
  if (!is_quantized()) {
    return {};
  }
  const kernels::KvShape& shape = store_->shape();
  const int group = kernels::code_group(shape.head_dim);
  require(
      shape.head_dim % group == 0 && shape.value_head_dim % group == 0 &&
          kernels::code_group(shape.value_head_dim) == group,
      ErrorCode::kUnsupported,
      "[{}] rows of {} and {} elements are not groups of codes of one size, as files hold them",
      kind(),
      shape.head_dim,
      shape.value_head_dim
  );
  return {fmt::to_string(group), fmt::to_string(shape.bits)};
}

std::int64_t PagedCache::trim(std::int64_t count) {
  require(!begun_, ErrorCode::kInternal, "[{}] trim inside of a transaction", kind());
  count = std::clamp<std::int64_t>(count, 0, offset_);
  if (!can_trim(count)) {
    return 0;
  }
  offset_ -= count;
  store_->drop_from(offset_);
  return count;
}

void PagedCache::clear() {
  require(!begun_, ErrorCode::kInternal, "[{}] clear inside of a transaction", kind());
  store_ = std::make_shared<kernels::KvStore>(store_->shape(), store_->layout());
  offset_ = 0;
}

std::size_t PagedCache::growth(std::int64_t row_count) const {
  return store_->growth(offset_, row_count);
}

std::size_t PagedCache::bytes_with(std::int64_t row_count, int step) const {
  if (bound_) {
    // The rows of a pass are there before the old ones leave; so may be those of the one before.
    const std::int64_t edges = 2 * (std::int64_t{step} + kernels::kPageRows);
    row_count = std::min<std::int64_t>(row_count, bound_->recent + bound_->keep + edges);
  }
  return store_->bytes_with(row_count);
}

std::size_t PagedCache::nbytes() const {
  return store_->nbytes();
}

LayerSnapshotPtr PagedCache::snapshot(std::int64_t from) const {
  from = std::max<std::int64_t>(from, 0);
  const auto last = committed();
  if (from >= last) {
    return nullptr;
  }
  return std::make_shared<RowSnapshot>(store_->slice(from, last), from, last);
}

LayerSnapshotPtr PagedCache::snapshot_of(
    const BlockSource& blocks, std::int64_t first, std::int64_t last
) const {
  kernels::KvStore rows(store_->shape());
  for (const auto& block : blocks.blocks) {
    require(
        block.index >= first / kernels::kPageRows && block.index <= (last - 1) / kernels::kPageRows,
        ErrorCode::kCorruptData,
        "[{}] page {} is not one of rows {} to {}",
        kind(),
        block.index,
        first,
        last
    );
    rows.add_block(block.index, block.bytes, blocks.read);
  }
  rows.drop_from(last);
  return std::make_shared<RowSnapshot>(std::move(rows), first, last);
}

bool PagedCache::has_visible(const kernels::KvStore& store, std::int64_t position) const {
  if (!bound_) {
    return store.holds(0, position);
  }
  return store.holds(0, std::min<std::int64_t>(bound_->keep, position)) &&
         store.holds(std::max<std::int64_t>(position - bound_->recent, 0), position);
}

std::optional<kernels::KvStore> PagedCache::with(const LayerSnapshot& rows) const {
  const auto* snapshot = dynamic_cast<const RowSnapshot*>(&rows);
  if (snapshot == nullptr || !(snapshot->rows().shape() == store_->shape()) ||
      offset_ < rows.first()) {
    return std::nullopt;
  }
  kernels::KvStore store(*store_);
  store.adopt(snapshot->rows(), rows.first());
  return store;
}

std::int64_t PagedCache::reach(const LayerSnapshot& rows, std::int64_t target) const {
  const auto store = with(rows);
  if (!store) {
    return -1;
  }
  // Within a page, the last position needs the fewest older pages.
  target = std::min(target, rows.last());
  while (target > 0 && !has_visible(*store, target)) {
    target = (target - 1) / kernels::kPageRows * kernels::kPageRows;
  }
  return target;
}

bool PagedCache::restore(const LayerSnapshot* rows, std::int64_t target) {
  require(!begun_, ErrorCode::kInternal, "[{}] restore inside of a transaction", kind());
  if (target < 0 || target > (rows == nullptr ? offset_ : rows->last())) {
    return false;
  }
  auto store = rows == nullptr ? kernels::KvStore(*store_) : with(*rows);
  if (!store || !has_visible(*store, target)) {
    return false;
  }
  store->drop_from(target);
  store_ = std::make_shared<kernels::KvStore>(*std::move(store));
  offset_ = target;
  return true;
}

void PagedCache::begin() {
  require(!begun_, ErrorCode::kInternal, "[{}] a transaction is already open", kind());
  drop_old_rows();
  begun_ = offset_;
}

void PagedCache::commit(std::int64_t count) {
  require(begun_.has_value(), ErrorCode::kInternal, "[{}] commit without a transaction", kind());
  offset_ = *begun_ + std::clamp<std::int64_t>(count, 0, offset_ - *begun_);
  begun_.reset();
  store_->drop_from(offset_);
}

void PagedCache::roll_back() {
  require(begun_.has_value(), ErrorCode::kInternal, "[{}] roll back without a transaction", kind());
  commit(0);
}

void PagedCache::drop_old_rows() {
  if (bound_ && offset_ > bound_->recent) {
    store_->drop_before(offset_ - bound_->recent, bound_->keep);
  }
}

}  // namespace saker::cache
