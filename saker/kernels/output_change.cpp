// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/output_change.h"

#include "saker/base/error.h"
#include "saker/kernels/backend.h"
#include "saker/kernels/cpu/dispatch.h"
#include "saker/kernels/cpu/multiply.h"
#include "saker/kernels/cpu_operation.h"
#include "saker/kernels/linear.h"
#include "saker/kernels/packed_storage.h"
#include "saker/kernels/row_tiles.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace saker::kernels {
namespace {

// Rows of which the products are kept until they are added: few enough to stay in a cache.
constexpr int kChunkRows = 64;

// row += strength * (scales * z + gains * row + offsets)
void add_to_row(const OutputChange& change, float strength, const float* z, float* row) {
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

// Some of the rows of a change, and the working memory for them.
class Chunk {
 public:
  Chunk(const ChangedColumns& change, const InputRows& x, int first, int count)
      : change_(*change.change),
        rows_(std::span(change.rows->rows)
                  .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count))),
        strengths_(std::span(change.rows->strengths)
                       .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count))),
        x_(x) {}

  void apply(const LinearBodies& bodies, float* y, int width) {
    InputRows z = change_.scales.empty() ? InputRows{} : input();
    for (const auto* weight : {&change_.down, &change_.up}) {
      if (*weight) {
        z = product(bodies, z, **weight, weight == &change_.down ? inner_ : outer_);
      }
    }
    each_row(static_cast<int>(rows_.size()), 3L * change_.outputs(), [&](int i) {
      const auto index = static_cast<std::size_t>(i);
      float* row = y + std::ptrdiff_t{rows_[index]} * width;
      add_to_row(change_, strengths_[index], z.data + i * z.row_stride, row);
    });
  }

 private:
  // The rows of x: where they lie if they follow each other, else gathered.
  InputRows input() {
    InputRows rows = x_;
    rows.count = static_cast<int>(rows_.size());
    rows.data = x_.data + rows_.front() * x_.row_stride;
    if (rows_.back() - rows_.front() + 1 == rows.count && x_.column_stride == 1) {
      return rows;
    }
    const int columns = change_.down ? change_.down->columns()
                        : change_.up ? change_.up->columns()
                                     : change_.outputs();
    gathered_.resize(rows_.size() * static_cast<std::size_t>(columns));
    float* to = gathered_.data();
    for (const int row : rows_) {
      const float* from = x_.data + row * x_.row_stride;
      for (int k = 0; k < columns; ++k) {
        *to++ = from[k * x_.column_stride];
      }
    }
    return {gathered_.data(), columns, 1, rows.count};
  }

  static InputRows product(
      const LinearBodies& bodies,
      const InputRows& x,
      const PackedWeight& weight,
      std::vector<float>& memory
  ) {
    memory.resize(static_cast<std::size_t>(x.count) * static_cast<std::size_t>(weight.rows()));
    const RowProduct product = {&weight.storage().matrix, x, nullptr, memory.data()};
    multiply_rows(bodies, {&product, 1});
    return {memory.data(), weight.rows(), 1, x.count};
  }

  const OutputChange& change_;
  std::span<const int> rows_;  // Ascending.
  std::span<const float> strengths_;
  InputRows x_;
  std::vector<float> gathered_;
  std::vector<float> inner_;
  std::vector<float> outer_;
};

// What runs on the stream's thread.
struct ChangeTask {
  const LinearBodies* bodies;
  std::vector<ChangedColumns> changes;
  InputRows x;
  const float* from;
  float* to;
  std::size_t bytes;
  int width;

  void operator()() const {
    if (from != to) {
      std::memcpy(to, from, bytes);
    }
    for (const ChangedColumns& change : changes) {
      const int count = static_cast<int>(change.rows->rows.size());
      for (int first = 0; first < count; first += kChunkRows) {
        Chunk chunk(change, x, first, std::min(kChunkRows, count - first));
        chunk.apply(*bodies, to + change.first_column, width);
      }
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
  const OutputChange& change = *changed.change;
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
  const OutputChange& change = *changed.change;
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

int OutputChange::outputs() const {
  return static_cast<int>(std::max({scales.size(), gains.size(), offsets.size()}));
}

std::size_t OutputChange::nbytes() const {
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
  return on_cpu() && y.dtype() == mx::float32 ? cpu_change_output(y, x, changes)
                                              : plain_change_output(y, x, changes, linear);
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
