// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/adapter_delta.h"

#include "saker/base/error.h"
#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/cpu/dispatch/multiply.h"
#include "saker/kernels/cpu/runtime/aligned_bytes.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/layout/row_tiles.h"
#include "saker/kernels/ops/cpu_operation.h"
#include "saker/kernels/ops/linear.h"
#include "saker/kernels/storage/packed_storage.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace saker::kernels {
namespace {

// Rows whose products are held until they are added: few enough to stay in a cache.
constexpr int kChunkRows = 64;

// row += strength * (scales * z + gains * row + offsets)
void add_to_row(const AdapterDelta& change, float strength, const float* z, float* row) {
  const auto count = static_cast<std::size_t>(change.outputs());
  const float* scales = change.scales.empty() ? nullptr : change.scales.data();
  const float* gains = change.gains.empty() ? nullptr : change.gains.data();
  const float* offsets = change.offsets.empty() ? nullptr : change.offsets.data();
  if (scales != nullptr && gains == nullptr && offsets == nullptr) {
    for (std::size_t i = 0; i < count; ++i) {
      row[i] += strength * (scales[i] * z[i]);
    }
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    float difference = scales != nullptr ? scales[i] * z[i] : 0.0F;
    difference += gains != nullptr ? gains[i] * row[i] : 0.0F;
    difference += offsets != nullptr ? offsets[i] : 0.0F;
    row[i] += strength * difference;
  }
}

// Floats that stay with their thread, so that passes do not fault in fresh pages each time.
class KeptFloats {
 public:
  float* take(std::size_t count) {
    bytes_.reserve(count * sizeof(float));
    return reinterpret_cast<float*>(bytes_.data());
  }

 private:
  AlignedBytes bytes_;
};

struct ChangeMemory {
  KeptFloats gathered;
  KeptFloats inner;
  KeptFloats outer;
};

InputRows part(InputRows rows, int first, int count) {
  rows.data += first * rows.row_stride;
  rows.count = count;
  return rows;
}

std::size_t product_floats(int rows, const PackedWeight& weight) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(weight.rows());
}

// Changes of the same rows. All products with x run together.
class ChangeGroup {
 public:
  ChangeGroup(
      const LinearBodies& bodies, std::span<const ChangedColumns> changes, ChangeMemory& memory
  )
      : bodies_(bodies), changes_(changes), rows_(*changes.front().rows), memory_(memory) {}

  // x: rows of `columns` columns; y: rows of `width`.
  void apply(const InputRows& x, int columns, float* y, int width) {
    const int count = static_cast<int>(rows_.rows.size());
    if (count == 0) {
      return;
    }
    multiply_down(gather(x, columns));
    for (int first = 0; first < count; first += kChunkRows) {
      const int chunk = std::min(kChunkRows, count - first);
      const std::vector<InputRows> products = multiply_up(first, chunk);
      each_row(chunk, 3L * width, [&](int i) {
        const int index = first + i;
        const auto row = static_cast<std::size_t>(index);
        float* to = y + std::ptrdiff_t{rows_.rows[row]} * width;
        for (std::size_t c = 0; c < changes_.size(); ++c) {
          const float* z = products[c].data + i * products[c].row_stride;
          add_to_row(*changes_[c].change, rows_.strengths[row], z, to + changes_[c].first_column);
        }
      });
    }
  }

 private:
  // The rows of x: in place if they are adjacent, else gathered.
  InputRows gather(const InputRows& x, int columns) {
    const int count = static_cast<int>(rows_.rows.size());
    const int first = rows_.rows.front();
    if (rows_.rows.back() - first + 1 == count && x.column_stride == 1) {
      return part(x, first, count);
    }
    float* gathered = memory_.gathered.take(rows_.rows.size() * static_cast<std::size_t>(columns));
    float* to = gathered;
    for (const int row : rows_.rows) {
      const float* from = x.data + row * x.row_stride;
      for (int k = 0; k < columns; ++k) {
        *to++ = from[k * x.column_stride];
      }
    }
    return {gathered, columns, 1, count};
  }

  // Sets inner_: per change the inputs of its `up`, for all rows.
  void multiply_down(const InputRows& x) {
    std::size_t floats = 0;
    for (const ChangedColumns& changed : changes_) {
      const auto& down = changed.change->down;
      floats += down ? product_floats(x.count, *down) : 0;
    }
    float* to = memory_.inner.take(floats);
    std::vector<RowProduct> products;
    inner_.assign(changes_.size(), x);
    for (std::size_t c = 0; c < changes_.size(); ++c) {
      if (const auto& down = changes_[c].change->down) {
        products.push_back({&down->storage().matrix, x, nullptr, to});
        inner_[c] = {to, down->rows(), 1, x.count};
        to += product_floats(x.count, *down);
      }
    }
    multiply_rows(bodies_, products);
  }

  // Returns per change the z of rows [first, first + count).
  std::vector<InputRows> multiply_up(int first, int count) {
    std::size_t floats = 0;
    for (const ChangedColumns& changed : changes_) {
      const auto& up = changed.change->up;
      floats += up ? product_floats(count, *up) : 0;
    }
    float* to = memory_.outer.take(floats);
    std::vector<RowProduct> products;
    std::vector<InputRows> results;
    for (std::size_t c = 0; c < changes_.size(); ++c) {
      results.push_back(part(inner_[c], first, count));
      if (const auto& up = changes_[c].change->up) {
        products.push_back({&up->storage().matrix, results[c], nullptr, to});
        results[c] = {to, up->rows(), 1, count};
        to += product_floats(count, *up);
      }
    }
    multiply_rows(bodies_, products);
    return results;
  }

  const LinearBodies& bodies_;
  std::span<const ChangedColumns> changes_;
  const RowStrengths& rows_;  // Ascending.
  ChangeMemory& memory_;
  std::vector<InputRows> inner_;
};

// The task that runs on the stream's thread.
struct ChangeTask {
  const LinearBodies* bodies;
  std::vector<ChangedColumns> changes;
  InputRows x;
  int columns;
  const float* from;
  float* to;
  std::size_t bytes;
  int width;

  void operator()() const {
    thread_local ChangeMemory memory;
    if (from != to) {
      std::memcpy(to, from, bytes);
    }
    const auto differ = [](const ChangedColumns& a, const ChangedColumns& b) {
      return a.rows != b.rows;
    };
    for (auto first = changes.begin(); first != changes.end();) {
      const auto last = std::adjacent_find(first, changes.end(), differ);
      const auto end = last == changes.end() ? last : std::next(last);
      ChangeGroup(*bodies, {first, end}, memory).apply(x, columns, to, width);
      first = end;
    }
  }
};

mx::array cpu_change_output(
    const mx::array& y, const mx::array& x, const std::vector<ChangedColumns>& changes
) {
  const LinearBodies* bodies = kernel_table().linear;
  const auto body =
      [bodies, changes](const std::vector<mx::array>& arrays, std::vector<mx::array>& outputs) {
        const mx::array& rows = arrays[1];
        return ChangeTask{
            .bodies = bodies,
            .changes = changes,
            .x = {rows.data<float>(), rows.strides()[0], rows.strides()[1], rows.shape(0)},
            .columns = rows.shape(1),
            .from = arrays[0].data<float>(),
            .to = outputs[0].data<float>(),
            .bytes = outputs[0].nbytes(),
            .width = outputs[0].shape(1),
        };
      };
  return cpu_update("ChangeOutput", {mx::contiguous(y), mx::astype(x, mx::float32)}, body);
}

using Multiply = mx::array (*)(
    const mx::array& x, const PackedWeight& weight, const std::optional<mx::array>& bias
);

mx::array vector_array(const std::vector<float>& values) {
  return mx::array(values.data(), {static_cast<int>(values.size())}, mx::float32);
}

// The changed rows, all columns.
mx::array changed_rows(
    const mx::array& y, const mx::array& x, const ChangedColumns& changed, Multiply multiply
) {
  const AdapterDelta& change = *changed.change;
  const int count = static_cast<int>(changed.rows->rows.size());
  const mx::array rows(changed.rows->rows.data(), {count}, mx::int32);
  auto z = mx::take(x, rows, 0);
  for (const auto* weight : {&change.down, &change.up}) {
    z = *weight ? multiply(z, **weight, std::nullopt) : z;
  }
  const auto all = mx::take(y, rows, 0);
  const mx::Shape start = {0, changed.first_column};
  const mx::Shape stop = {count, changed.first_column + change.outputs()};
  const auto old = mx::astype(mx::slice(all, start, stop), mx::float32);
  auto delta = change.scales.empty()
                   ? mx::zeros_like(old)
                   : mx::multiply(vector_array(change.scales), mx::astype(z, mx::float32));
  if (!change.gains.empty()) {
    delta = mx::add(delta, mx::multiply(vector_array(change.gains), old));
  }
  if (!change.offsets.empty()) {
    delta = mx::add(delta, vector_array(change.offsets));
  }
  const auto strengths = mx::reshape(vector_array(changed.rows->strengths), {count, 1});
  const auto updated = mx::add(old, mx::multiply(strengths, delta));
  return mx::slice_update(all, mx::astype(updated, y.dtype()), start, stop);
}

mx::array plain_change_output(
    mx::array y, const mx::array& x, const std::vector<ChangedColumns>& changes, Multiply multiply
) {
  for (const ChangedColumns& change : changes) {
    std::vector<int> source(static_cast<std::size_t>(y.shape(0)));
    std::iota(source.begin(), source.end(), 0);
    int next = y.shape(0);
    for (const int row : change.rows->rows) {
      source.at(static_cast<std::size_t>(row)) = next++;
    }
    const auto both = mx::concatenate({y, changed_rows(y, x, change, multiply)}, 0);
    y = mx::take(both, mx::array(source.data(), {y.shape(0)}, mx::int32), 0);
  }
  return y;
}

void check(const mx::array& y, const mx::array& x, const ChangedColumns& changed) {
  const AdapterDelta& change = *changed.change;
  const int outputs = change.outputs();
  const auto fits = [&](const std::vector<float>& values) {
    return values.empty() || values.size() == static_cast<std::size_t>(outputs);
  };
  const bool vectors_fit = fits(change.gains) && fits(change.offsets);
  const int inner = change.down ? change.down->rows() : x.shape(-1);
  const bool weights_fit =
      change.scales.empty()
          ? !change.down && !change.up
          : (!change.down || change.down->columns() == x.shape(-1)) &&
                (change.up ? change.up->columns() == inner && change.up->rows() == outputs
                           : inner == outputs);
  require(
      y.ndim() == 2 && x.ndim() == 2 && y.shape(0) == x.shape(0) && vectors_fit && weights_fit &&
          changed.first_column >= 0 && changed.first_column + outputs <= y.shape(1) &&
          changed.rows->rows.size() == changed.rows->strengths.size() &&
          std::ranges::is_sorted(changed.rows->rows) &&
          (changed.rows->rows.empty() ||
           (changed.rows->rows.front() >= 0 && changed.rows->rows.back() < y.shape(0))),
      ErrorCode::kInternal,
      "[change_output] a change of {} outputs from column {} does not fit y [{}] and x [{}]",
      outputs,
      changed.first_column,
      fmt::join(y.shape(), ", "),
      fmt::join(x.shape(), ", ")
  );
}

}  // namespace

int AdapterDelta::outputs() const {
  return static_cast<int>(std::max({scales.size(), gains.size(), offsets.size()}));
}

std::size_t AdapterDelta::nbytes() const {
  std::size_t total = (scales.size() + gains.size() + offsets.size()) * sizeof(float);
  for (const auto* weight : {&down, &up, &table}) {
    total += *weight ? (*weight)->nbytes() : 0;
  }
  return total;
}

mx::array change_output(
    const mx::array& y, const mx::array& x, const std::vector<ChangedColumns>& changes
) {
  for (const ChangedColumns& change : changes) {
    check(y, x, change);
  }
  if (on_cpu() && y.dtype() == mx::float32) {
    return cpu_change_output(y, x, changes);
  }
  const Multiply multiply = [](const auto& z, const auto& weight, const auto& bias) {
    return linear(z, weight, bias);
  };
  return plain_change_output(y, x, changes, multiply);
}

mx::array change_output_reference(
    const mx::array& y, const mx::array& x, const std::vector<ChangedColumns>& changes
) {
  for (const ChangedColumns& change : changes) {
    check(y, x, change);
  }
  return plain_change_output(y, x, changes, linear_reference);
}

}  // namespace saker::kernels
