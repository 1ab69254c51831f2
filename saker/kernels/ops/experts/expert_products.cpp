// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/experts/expert_products.h"

#include "saker/kernels/layout/row_tiles.h"
#include "saker/kernels/ops/linear_task.h"
#include "saker/kernels/storage/packed_storage.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

namespace saker::kernels {

Routes::Routes(const float* logits, int rows, int experts, const RowRouter& router)
    : ids(static_cast<std::size_t>(rows) * static_cast<std::size_t>(router.options.chosen)),
      weights(ids.size()),
      pairs(ids.size()),
      ranks(router.options.chosen) {
  const auto width = static_cast<std::size_t>(experts);
  const auto count = static_cast<std::size_t>(ranks);
  // An exponential costs about as much as reading 16 floats.
  each_row(rows, 16L * experts, [&](int row) {
    const std::size_t at = static_cast<std::size_t>(row) * count;
    const std::span<const float> of_row(logits + static_cast<std::size_t>(row) * width, width);
    choose_row(of_row, router, {ids.data() + at, count}, weights.data() + at);
  });
  std::vector<int> sorted(ids.size());
  sort_pairs(ids, experts, pairs.data(), sorted.data());
  runs = runs_of(sorted);
}

ExpertProducts::ExpertProducts(
    const ExpertWeights& gate_up,
    const ExpertWeights& down,
    SharedRows* shared,
    const InputRows& x,
    Routes routes
)
    : routes_(std::move(routes)),
      x_(x),
      columns_(gate_up.columns()),
      width_(down.columns()),
      merged_width_(gate_up.rows()),
      merged_(memory_for({pairs(), merged_width_})),
      fed_(memory_for({pairs(), down.rows()})),
      shared_(shared) {
  const bool joins = shared != nullptr && shared->joins();
  const bool is_gated = merged_width_ != width_;
  if (!is_gated) {
    ones_.assign(static_cast<std::size_t>(std::max(width_, joins ? shared->width() : 0)), 1.0F);
  }
  if (joins) {
    add_shared();
  }
  for (const ExpertRun& run : routes_.runs) {
    const auto expert = static_cast<std::size_t>(run.expert);
    add_gate_up(run, (*gate_up.packed())[expert], gate_up.bias(run.expert));
    const PackedWeight& weight = (*down.packed())[expert].front();
    float* out = fed_.data<float>() + std::ptrdiff_t{run.first} * weight.rows();
    add_down(weight.storage().matrix, down.bias(run.expert), out);
  }
}

void ExpertProducts::operator()(const LinearBodies& bodies, GatedFunction function, float* out) {
  ProductChain chain{first_, feeds_, second_, {}};
  chain.between = [this, function](int fed) {
    const GateRows& rows = gates_[static_cast<std::size_t>(fed)];
    for (std::ptrdiff_t row = 0; row < rows.count; ++row) {
      float* gate = rows.gate + row * rows.gate_stride;
      function({gate, rows.up + row * rows.up_stride, gate}, rows.width);
    }
  };
  multiply_chain(bodies, chain);
  const std::vector<int> places = places_of_pairs(routes_.pairs);
  const auto ranks = static_cast<std::size_t>(routes_.ranks);
  const int outputs = fed_.shape(1);
  each_row(x_.count, std::int64_t{outputs} * (routes_.ranks + 1), [&](int row) {
    const std::size_t first = static_cast<std::size_t>(row) * ranks;
    float* to = out + std::ptrdiff_t{row} * outputs;
    const std::span<const int> of_row(places.data() + first, ranks);
    combine_row(fed_.data<float>(), of_row, routes_.weights.data() + first, outputs, to);
    if (shared_ != nullptr) {
      shared_->add_to(row, to);
    }
  });
}

void ExpertProducts::add_gates(float* out, int count, int merged_width, int width, bool is_joined) {
  if (merged_width == width) {
    gates_.push_back({out, ones_.data(), width, 0, count, width});
    return;
  }
  const std::ptrdiff_t to_up = is_joined ? width : std::ptrdiff_t{count} * width;
  const std::ptrdiff_t stride = is_joined ? merged_width : width;
  gates_.push_back({out, out + to_up, stride, stride, count, width});
}

void ExpertProducts::add_shared() {
  const SharedTask& task = shared_->task();
  const std::size_t parts = task.gate_up.parts.size();
  float* out = shared_->merged();
  const float* bias = shared_->biases().gate_up;
  add_gates(out, x_.count, task.gate_up.outputs, shared_->width(), parts == 1);
  for (const LinearTask::Part& part : task.gate_up.parts) {
    const PackedMatrix& matrix = part.storage->matrix;
    first_.push_back({&matrix, x_, bias, out});
    feeds_.push_back(static_cast<int>(second_.size()));
    out += std::ptrdiff_t{x_.count} * matrix.rows;
    bias += bias != nullptr ? matrix.rows : 0;
  }
  if (task.share) {
    const PackedMatrix& matrix = task.share->parts.front().storage->matrix;
    first_.push_back({&matrix, x_, shared_->biases().share, shared_->shares()});
    feeds_.push_back(kFeedsNone);
  }
  add_down(task.down.parts.front().storage->matrix, shared_->biases().down, shared_->results());
}

void ExpertProducts::add_gate_up(
    const ExpertRun& run, const std::vector<PackedWeight>& parts, const float* bias
) {
  float* out = merged_.data<float>() + std::ptrdiff_t{run.first} * merged_width_;
  add_gates(out, run.count, merged_width_, width_, parts.size() == 1);
  for (const PackedWeight& part : parts) {
    RowProduct product{&part.storage().matrix, rows_of(run), bias, out};
    if (run.count > 1) {
      product.make = &gather_;
      product.first_made = run.first;
    }
    first_.push_back(product);
    feeds_.push_back(static_cast<int>(second_.size()));
    out += std::ptrdiff_t{run.count} * width_;
    bias += bias != nullptr ? width_ : 0;
  }
}

void ExpertProducts::add_down(const PackedMatrix& weight, const float* bias, float* out) {
  const GateRows& rows = gates_.back();
  second_.push_back({&weight, {rows.gate, rows.gate_stride, 1, rows.count}, bias, out});
}

InputRows ExpertProducts::rows_of(const ExpertRun& run) const {
  InputRows rows = x_;
  rows.count = run.count;
  rows.data += run.count == 1 ? routes_.row_at(run.first) * x_.row_stride : 0;
  return rows;
}

void ExpertProducts::gather(int first, int count, float* to) const {
  for (int place = first; place < first + count; ++place) {
    const float* from = x_.data + routes_.row_at(place) * x_.row_stride;
    for (int k = 0; k < columns_; ++k) {
      to[k] = from[k * x_.column_stride];
    }
    to += columns_;
  }
}

}  // namespace saker::kernels
