// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/expert_linear.h"

#include "saker/base/error.h"
#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/cpu/dispatch/multiply.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/ops/cpu_operation.h"
#include "saker/kernels/storage/packed_storage.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

namespace saker::kernels {
namespace {

// One product per run of equal experts. Rows of a nonexistent expert become NaN.
void multiply_runs(
    const LinearBodies& bodies,
    const std::vector<PackedWeight>& weights,
    const InputRows& x,
    std::span<const int> experts,
    float* out
) {
  thread_local std::vector<RowProduct> kept;
  std::vector<RowProduct>& products = kept;
  products.clear();
  const std::ptrdiff_t width = weights.front().rows();
  for (auto run = experts.begin(); run != experts.end();) {
    const auto end = std::find_if(run, experts.end(), [&](int expert) { return expert != *run; });
    const std::ptrdiff_t first = run - experts.begin();
    const std::ptrdiff_t count = end - run;
    if (*run >= 0 && *run < static_cast<int>(weights.size())) {
      RowProduct product;
      product.weight = &weights[static_cast<std::size_t>(*run)].storage().matrix;
      product.x = x;
      product.x.data += first * x.row_stride;
      product.x.count = static_cast<int>(count);
      product.out = out + first * width;
      products.push_back(product);
    } else {
      std::fill_n(out + first * width, count * width, std::numeric_limits<float>::quiet_NaN());
    }
    run = end;
  }
  multiply_rows(bodies, products);
}

mx::array cpu_expert_linear(
    const mx::array& x, const ExpertPermutation& sorted, const ExpertWeights& weights
) {
  const LinearBodies* bodies = kernel_table().linear;
  check_order(*bodies, weights.packed()->front().storage().matrix);
  const auto body = [bodies, packed = weights.packed()](
                        const std::vector<mx::array>& arrays, std::vector<mx::array>& outputs
                    ) {
    InputRows rows;
    rows.data = arrays[0].data<float>();
    rows.row_stride = arrays[0].strides()[0];
    rows.column_stride = arrays[0].strides()[1];
    const std::span<const int> experts(arrays[1].data<int>(), arrays[1].size());
    float* out = outputs[0].data<float>();
    return [bodies, packed, rows, experts, out] {
      multiply_runs(*bodies, *packed, rows, experts, out);
    };
  };
  const auto y = cpu_operation(
      "ExpertLinear",
      {x.shape(0), weights.rows()},
      {mx::astype(x, mx::float32), mx::contiguous(sorted.experts)},
      body
  );
  return mx::astype(y, x.dtype());
}

// [P, K] -> [P, 1, K] with dense strides. On a GPU, sorted gather_mm of MLX 0.32.4 misreads rows
// that got their axis from expand_dims (https://github.com/ml-explore/mlx/issues/4253).
mx::array one_row_each(const mx::array& x) {
  return mx::reshape(mx::contiguous(x), {x.shape(0), 1, x.shape(1)});
}

mx::array gpu_expert_linear(
    const mx::array& x, const ExpertPermutation& sorted, const ExpertWeights& weights
) {
  const MlxWeight& arrays = *weights.packed()->front().storage().arrays;
  const WeightFormat& format = weights.format();
  const auto stacked = [&](const mx::array& array) {
    return mx::reshape(array, {weights.experts(), weights.rows(), array.shape(1)});
  };
  const auto rows = one_row_each(mx::astype(x, operand_dtype(arrays)));
  const auto product =
      arrays.scales ? mx::gather_qmm(
                          rows,
                          stacked(arrays.weight),
                          stacked(*arrays.scales),
                          arrays.biases ? std::optional(stacked(*arrays.biases)) : std::nullopt,
                          std::nullopt,
                          sorted.experts,
                          true,
                          format.group_size,
                          format.bits,
                          mlx_mode(format.kind),
                          std::nullopt,
                          true
                      )
                    : mx::gather_mm(
                          rows,
                          mx::swapaxes(stacked(mx::astype(arrays.weight, rows.dtype())), 1, 2),
                          std::nullopt,
                          sorted.experts,
                          true
                      );
  return mx::squeeze(product, 1);
}

void check_rows(const mx::array& x, const ExpertPermutation& sorted, const ExpertWeights& weights) {
  require(
      x.ndim() == 2 && x.shape(1) == weights.columns() &&
          sorted.experts.shape() == mx::Shape{x.shape(0)} && sorted.experts.dtype() == mx::int32,
      ErrorCode::kInternal,
      "[experts] got x [{}] and experts [{}], expected [P, {}] and int32 [P]",
      fmt::join(x.shape(), ", "),
      fmt::join(sorted.experts.shape(), ", "),
      weights.columns()
  );
}

}  // namespace

ExpertWeights::ExpertWeights(int experts, int rows, std::vector<PackedWeight> packed)
    : experts_(experts),
      rows_(rows),
      packed_(std::make_shared<const std::vector<PackedWeight>>(std::move(packed))) {}

ExpertWeights ExpertWeights::pack(
    const std::vector<std::vector<WeightTensors>>& experts, const WeightFormat& format
) {
  require(!experts.empty(), ErrorCode::kInternal, "[experts] got no expert to pack");
  const int count = static_cast<int>(experts.size());
  std::vector<PackedWeight> packed;
  if (!on_cpu()) {
    std::vector<WeightTensors> parts;
    for (const auto& expert : experts) {
      parts.insert(parts.end(), expert.begin(), expert.end());
    }
    packed.push_back(PackedWeight::pack(parts, format));
    return {count, packed.front().rows() / count, std::move(packed)};
  }
  packed.reserve(experts.size());
  for (const auto& expert : experts) {
    packed.push_back(PackedWeight::pack(expert, format));
    const PackedWeight& first = packed.front();
    const PackedWeight& last = packed.back();
    require(
        first.rows() == last.rows() && first.columns() == last.columns(),
        ErrorCode::kCorruptData,
        "[{}] got [{}, {}], expected [{}, {}] like expert 0",
        expert.front().name,
        last.rows(),
        last.columns(),
        first.rows(),
        first.columns()
    );
  }
  return {count, packed.front().rows(), std::move(packed)};
}

std::size_t ExpertWeights::expert_nbytes() const {
  const PackedWeight& first = packed_->front();
  return packed_->size() == 1 ? first.nbytes() / static_cast<std::size_t>(experts_)
                              : first.nbytes();
}

mx::array ExpertWeights::dequantized() const {
  std::vector<mx::array> parts;
  parts.reserve(packed_->size());
  for (const PackedWeight& weight : *packed_) {
    parts.push_back(weight.dequantized());
  }
  return mx::reshape(mx::concatenate(parts, 0), {experts_, rows_, columns()});
}

mx::array expert_linear(
    const mx::array& x, const ExpertPermutation& sorted, const ExpertWeights& weights
) {
  check_rows(x, sorted, weights);
  return on_cpu() ? cpu_expert_linear(x, sorted, weights) : gpu_expert_linear(x, sorted, weights);
}

mx::array expert_linear_reference(
    const mx::array& x, const ExpertPermutation& sorted, const ExpertWeights& weights
) {
  check_rows(x, sorted, weights);
  const auto product = mx::gather_mm(
      one_row_each(mx::astype(x, mx::float32)),
      mx::swapaxes(weights.dequantized(), 1, 2),
      std::nullopt,
      sorted.experts,
      true
  );
  return mx::astype(mx::squeeze(product, 1), x.dtype());
}

}  // namespace saker::kernels
