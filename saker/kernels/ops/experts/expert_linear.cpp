// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/experts/expert_linear.h"

#include "saker/base/error.h"
#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/cpu/dispatch/multiply.h"
#include "saker/kernels/cpu/runtime/mapped_pages.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/ops/cpu_operation.h"
#include "saker/kernels/ops/experts/expert_rows.h"
#include "saker/kernels/ops/linear_task.h"
#include "saker/kernels/storage/packed_storage.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

namespace saker::kernels {
namespace {

bool has_parts(const ExpertWeights::Packed& weights) {
  return std::ranges::any_of(weights, [](const auto& parts) { return parts.size() > 1; });
}

// Rows times their experts' weights, one product per run and part. A run's parts lie one after the
// other. Rows of a nonexistent expert become NaN.
void multiply_runs(
    const LinearBodies& bodies,
    const ExpertWeights& weights,
    const InputRows& x,
    std::span<const ExpertRun> runs,
    float* out
) {
  std::vector<RowProduct> products;
  for (const ExpertRun& run : runs) {
    float* to = out + std::ptrdiff_t{run.first} * weights.rows();
    if (run.expert < 0 || run.expert >= weights.experts()) {
      const std::ptrdiff_t count = std::ptrdiff_t{run.count} * weights.rows();
      std::fill_n(to, count, std::numeric_limits<float>::quiet_NaN());
      continue;
    }
    RowProduct product;
    product.x = x;
    product.x.data += run.first * x.row_stride;
    product.x.count = run.count;
    product.bias = weights.bias(run.expert);
    for (const PackedWeight& part : (*weights.packed())[static_cast<std::size_t>(run.expert)]) {
      product.weight = &part.storage().matrix;
      product.out = to;
      products.push_back(product);
      product.bias += product.bias != nullptr ? part.rows() : 0;
      to += std::ptrdiff_t{run.count} * part.rows();
    }
  }
  multiply_rows(bodies, products);
}

// Copies results from where a run's parts lie one after the other to rows of all parts.
void lay_side_by_side(
    const ExpertWeights& weights, const float* results, std::span<const ExpertRun> runs, float* out
) {
  for (const ExpertRun& run : runs) {
    const std::ptrdiff_t at = std::ptrdiff_t{run.first} * weights.rows();
    const float* from = results + at;
    float* to = out + at;
    if (run.expert < 0 || run.expert >= weights.experts()) {
      std::copy_n(from, std::ptrdiff_t{run.count} * weights.rows(), to);
      continue;
    }
    for (const PackedWeight& part : (*weights.packed())[static_cast<std::size_t>(run.expert)]) {
      for (int row = 0; row < run.count; ++row, from += part.rows()) {
        std::copy_n(from, part.rows(), to + std::ptrdiff_t{row} * weights.rows());
      }
      to += part.rows();
    }
  }
}

mx::array cpu_expert_linear(
    const mx::array& x, const ExpertPermutation& sorted, const ExpertWeights& weights
) {
  const LinearBodies* bodies = kernel_table().linear;
  weights.check_orders(*bodies);
  const auto body =
      [bodies, weights](const std::vector<mx::array>& arrays, std::vector<mx::array>& outputs) {
        const InputRows rows = input_rows(arrays[0]);
        const std::span<const int> experts(arrays[1].data<int>(), arrays[1].size());
        float* out = outputs[0].data<float>();
        return [bodies, weights, rows, experts, out] {
          const auto runs = runs_of(experts);
          if (!has_parts(*weights.packed())) {
            multiply_runs(*bodies, weights, rows, runs, out);
            return;
          }
          mx::array apart = memory_for({rows.count, weights.rows()});
          multiply_runs(*bodies, weights, rows, runs, apart.data<float>());
          lay_side_by_side(weights, apart.data<float>(), runs, out);
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

// One part of all experts.
mx::array gpu_product(
    const mx::array& x, const ExpertPermutation& sorted, const PackedWeight& part, int experts
) {
  const MlxWeight& arrays = *part.storage().arrays;
  const WeightFormat& format = part.format();
  const auto stacked = [&](const mx::array& array) {
    return mx::reshape(array, {experts, part.rows() / experts, array.shape(1)});
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

// Adds each row's bias, if there are any.
mx::array with_biases(
    const mx::array& y, const ExpertPermutation& sorted, const ExpertWeights& weights
) {
  if (!weights.biases()) {
    return y;
  }
  const auto biases = mx::take(*weights.biases(), sorted.experts, 0);
  return mx::add(y, mx::astype(biases, y.dtype()));
}

mx::array gpu_expert_linear(
    const mx::array& x, const ExpertPermutation& sorted, const ExpertWeights& weights
) {
  std::vector<mx::array> results;
  for (const PackedWeight& part : weights.packed()->front()) {
    results.push_back(gpu_product(x, sorted, part, weights.experts()));
  }
  const auto y = results.size() == 1 ? results.front() : mx::concatenate(results, 1);
  return with_biases(y, sorted, weights);
}

// Blocks that follow each other in the file are asked for together.
void ask_for_blocks(const PackedMatrix& matrix) {
  const std::size_t block_bytes =
      static_cast<std::size_t>(matrix.tile_row_bytes()) * std::size_t{kBlockRows};
  const std::byte* first = matrix.block(0);
  const std::byte* end = first;
  for (int block = 0; block < matrix.blocks(); ++block) {
    const std::byte* at = matrix.block(block);
    if (at != end) {
      will_need(first, static_cast<std::size_t>(end - first));
      first = at;
    }
    end = at + block_bytes;
  }
  will_need(first, static_cast<std::size_t>(end - first));
}

std::vector<PackedWeight> pack_parts(const std::vector<ExpertPart>& parts) {
  std::vector<PackedWeight> packed;
  for (const ExpertPart& part : parts) {
    packed.push_back(PackedWeight::pack(part.tensors, part.format));
    require(
        packed.back().columns() == packed.front().columns(),
        ErrorCode::kCorruptData,
        "[{}] got {} columns, expected {} like its first part",
        part.tensors.front().name,
        packed.back().columns(),
        packed.front().columns()
    );
  }
  return packed;
}

// For a GPU: each part of all experts as one weight.
std::vector<PackedWeight> pack_stacks(const std::vector<std::vector<ExpertPart>>& experts) {
  std::vector<ExpertPart> stacks = experts.front();
  for (std::size_t expert = 1; expert < experts.size(); ++expert) {
    const auto& parts = experts[expert];
    require(
        std::ranges::equal(parts, stacks, {}, &ExpertPart::format, &ExpertPart::format),
        ErrorCode::kUnsupported,
        "[{}] is in another format than expert 0, which a GPU can't run",
        parts.front().tensors.front().name
    );
    for (std::size_t i = 0; i < parts.size(); ++i) {
      auto& all = stacks[i].tensors;
      all.insert(all.end(), parts[i].tensors.begin(), parts[i].tensors.end());
    }
  }
  return pack_parts(stacks);
}

int rows_of(const std::vector<PackedWeight>& parts) {
  return std::transform_reduce(parts.begin(), parts.end(), 0, std::plus{}, [](const auto& part) {
    return part.rows();
  });
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

ExpertWeights::ExpertWeights(int experts, int rows, Packed packed)
    : experts_(experts), rows_(rows), packed_(std::make_shared<const Packed>(std::move(packed))) {}

ExpertWeights ExpertWeights::pack(const std::vector<std::vector<ExpertPart>>& experts) {
  require(!experts.empty(), ErrorCode::kInternal, "[experts] got no expert to pack");
  const int count = static_cast<int>(experts.size());
  if (!on_cpu()) {
    auto packed = pack_stacks(experts);
    const int rows = rows_of(packed) / count;
    return {count, rows, {std::move(packed)}};
  }
  Packed packed;
  packed.reserve(experts.size());
  for (const auto& expert : experts) {
    packed.push_back(pack_parts(expert));
    const int rows = rows_of(packed.back());
    const int columns = packed.back().front().columns();
    require(
        rows == rows_of(packed.front()) && columns == packed.front().front().columns(),
        ErrorCode::kCorruptData,
        "[{}] got [{}, {}], expected [{}, {}] like expert 0",
        expert.front().tensors.front().name,
        rows,
        columns,
        rows_of(packed.front()),
        packed.front().front().columns()
    );
  }
  const int rows = rows_of(packed.front());
  return {count, rows, std::move(packed)};
}

ExpertWeights ExpertWeights::pack(
    const std::vector<std::vector<WeightTensors>>& experts, const WeightFormat& format
) {
  std::vector<std::vector<ExpertPart>> parts;
  parts.reserve(experts.size());
  for (const auto& expert : experts) {
    parts.push_back({{expert, format}});
  }
  return pack(parts);
}

ExpertWeights ExpertWeights::with_biases(mx::array biases) const {
  require(
      biases.shape() == mx::Shape{experts_, rows_} && biases.dtype() == mx::float32,
      ErrorCode::kInternal,
      "[experts] got biases [{}], expected [{}, {}] in float32",
      fmt::join(biases.shape(), ", "),
      experts_,
      rows_
  );
  ExpertWeights result = *this;
  result.biases_ = std::move(biases);
  return result;
}

const float* ExpertWeights::bias(int expert) const {
  return biases_ ? biases_->data<float>() + std::ptrdiff_t{expert} * rows_ : nullptr;
}

void ExpertWeights::check_orders(const LinearBodies& bodies) const {
  // All experts are packed at once.
  for (const PackedWeight& part : packed_->front()) {
    check_order(bodies, part.storage().matrix);
  }
}

bool ExpertWeights::stays_in_file() const {
  // Experts have one format, or nearly so. To look at all of them would take longer than it saves.
  return std::ranges::any_of(packed_->front(), [](const PackedWeight& part) {
    return part.storage().matrix.in_place();
  });
}

void ExpertWeights::ask_for_pages(int expert) const {
  for (const PackedWeight& part : (*packed_)[static_cast<std::size_t>(expert)]) {
    if (part.storage().matrix.in_place()) {
      ask_for_blocks(part.storage().matrix);
    }
  }
}

std::size_t ExpertWeights::expert_nbytes() const {
  std::size_t total = 0;
  for (const auto& parts : *packed_) {
    for (const PackedWeight& part : parts) {
      total += part.nbytes();
    }
  }
  return total / static_cast<std::size_t>(experts_);
}

mx::array ExpertWeights::dequantized() const {
  std::vector<mx::array> all;
  for (const auto& parts : *packed_) {
    for (const PackedWeight& part : parts) {
      all.push_back(part.dequantized());
    }
  }
  if (packed_->size() > 1 || all.size() == 1) {
    return mx::reshape(mx::concatenate(all, 0), {experts_, rows_, columns()});
  }
  for (mx::array& part : all) {  // Each of all experts.
    part = mx::reshape(part, {experts_, part.shape(0) / experts_, columns()});
  }
  return mx::concatenate(all, 1);
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
  return mx::astype(with_biases(mx::squeeze(product, 1), sorted, weights), x.dtype());
}

}  // namespace saker::kernels
