// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/recurrent/delta_task.h"

#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/cpu/runtime/aligned_bytes.h"
#include "saker/kernels/layout/row_tiles.h"
#include "saker/kernels/ops/strided_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace saker::kernels {
namespace {

float logistic(double x) {
  return static_cast<float>(1.0 / (1.0 + std::exp(-x)));
}

double softplus(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

}  // namespace

DeltaTask::DeltaTask(
    const DeltaShape& of,
    const SpanRows& rows,
    int count,
    std::span<const mx::array> weights,
    std::span<const mx::array> states,
    std::span<mx::array> results
)
    : bodies(kernel_table().delta),
      shape(of),
      row_count(count),
      convolution(weights[0].data<float>()),
      decay_rate(weights[1].data<float>()),
      step_bias(weights[2].data<float>()) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t at = kDeltaStateArrays * i;
    spans.push_back({
        .first_row = rows[i].first,
        .row_count = rows[i].second,
        .inputs_from = states[at].data<float>(),
        .memory_from = states[at + 1].data<float>(),
        .inputs_to = results[at].data<float>(),
        .memory_to = results[at + 1].data<float>(),
    });
  }
}

void DeltaTask::operator()(
    const DeltaRows& rows,
    float* out,
    const std::function<void(const DeltaSpanTask& span, int head)>& after
) const {
  // The stream's thread keeps this memory, so that passes do not fault in fresh pages each time.
  thread_local AlignedBytes memory;
  const std::size_t count = static_cast<std::size_t>(row_count);
  const std::size_t channels = static_cast<std::size_t>(shape.channels());
  const std::size_t heads = static_cast<std::size_t>(shape.value_heads);
  memory.reserve(count * (channels + 2 * heads) * sizeof(float));
  auto* const mixed = reinterpret_cast<float*>(memory.data());
  float* const decay = mixed + count * channels;
  float* const beta = decay + count * heads;
  for (const DeltaSpanTask& span : spans) {
    convolve(span, rows.x, mixed);
    keep_inputs(span, rows.x);
  }
  open_gates(rows, decay, beta);
  const int tasks = static_cast<int>(spans.size()) * shape.value_heads;
  thread_pool().run(tasks, [&](int task) {
    const DeltaSpanTask& span = spans[static_cast<std::size_t>(task / shape.value_heads)];
    const int head = task % shape.value_heads;
    run_head(span, head, mixed, decay, beta, out);
    if (after) {
      after(span, head);
    }
  });
}

// Row `index` of the sequence, counted from the span's first row. Negative: from the kept inputs.
const float* DeltaTask::input_row(const DeltaSpanTask& span, const HeadRows& x, int index) const {
  return index >= 0 ? StridedRows::at(x, span.first_row + index, 0)
                    : span.inputs_from + std::ptrdiff_t{shape.taps - 1 + index} * shape.channels();
}

// q, k and v of a span's rows; q and k are normalized.
void DeltaTask::convolve(const DeltaSpanTask& span, const HeadRows& x, float* mixed) const {
  const int key_heads = 2 * shape.key_heads;
  const int heads = key_heads + shape.value_heads;
  const float query_scale = 1.0F / std::sqrt(static_cast<float>(shape.key_dim));
  each_row(span.row_count * heads, 8L * shape.key_dim, [&](int index) {
    const int row = index / heads;
    const int head = index % heads;
    const bool key = head < key_heads;
    const int width = key ? shape.key_dim : shape.value_dim;
    const std::ptrdiff_t first =
        key ? std::ptrdiff_t{head} * width
            : std::ptrdiff_t{key_heads} * shape.key_dim + std::ptrdiff_t{head - key_heads} * width;
    std::array<const float*, kMaxDeltaTaps> taps;
    for (int tap = 0; tap < shape.taps; ++tap) {
      taps.at(static_cast<std::size_t>(tap)) =
          input_row(span, x, row + tap - shape.taps + 1) + first;
    }
    float* to = mixed + std::ptrdiff_t{span.first_row + row} * shape.channels() + first;
    bodies->convolve({taps.data(), convolution + first, shape.channels(), shape.taps, to}, width);
    if (key) {
      bodies->normalize(to, width, kDeltaNormEps, head < shape.key_heads ? query_scale : 1.0F);
    }
  });
}

void DeltaTask::keep_inputs(const DeltaSpanTask& span, const HeadRows& x) const {
  const int kept = shape.taps - 1;
  const std::size_t bytes = static_cast<std::size_t>(shape.channels()) * sizeof(float);
  for (int i = 0; i < kept; ++i) {
    float* to = span.inputs_to + std::ptrdiff_t{i} * shape.channels();
    std::memcpy(to, input_row(span, x, span.row_count - kept + i), bytes);
  }
}

void DeltaTask::open_gates(const DeltaRows& rows, float* decay, float* beta) const {
  for (int row = 0; row < row_count; ++row) {
    for (int head = 0; head < shape.value_heads; ++head) {
      const double step = softplus(double{StridedRows::at(rows.a, row, 0)[head]} + step_bias[head]);
      *decay++ = static_cast<float>(std::exp(-double{decay_rate[head]} * step));
      *beta++ = logistic(StridedRows::at(rows.b, row, 0)[head]);
    }
  }
}

void DeltaTask::run_head(
    const DeltaSpanTask& span,
    int head,
    const float* mixed,
    const float* decay,
    const float* beta,
    float* out
) const {
  // Kept by each thread of the pool, as above.
  thread_local AlignedBytes scratch;
  scratch.reserve(static_cast<std::size_t>(shape.key_dim) * kDeltaColumns * sizeof(float));
  const int key_head = head / (shape.value_heads / shape.key_heads);
  const std::ptrdiff_t state = std::ptrdiff_t{head} * shape.key_dim * shape.value_dim;
  const std::ptrdiff_t first = span.first_row;
  const float* q = mixed + first * shape.channels() + std::ptrdiff_t{key_head} * shape.key_dim;
  const float* k = q + std::ptrdiff_t{shape.key_heads} * shape.key_dim;
  const float* v = mixed + first * shape.channels() +
                   std::ptrdiff_t{2 * shape.key_heads} * shape.key_dim +
                   std::ptrdiff_t{head} * shape.value_dim;
  bodies->run_head({
      .from = span.memory_from + state,
      .to = span.memory_to + state,
      .scratch = reinterpret_cast<float*>(scratch.data()),
      .key_dim = shape.key_dim,
      .value_dim = shape.value_dim,
      .rows = span.row_count,
      .q = q,
      .k = k,
      .v = v,
      .stride = shape.channels(),
      .decay = decay + first * shape.value_heads + head,
      .beta = beta + first * shape.value_heads + head,
      .gate_stride = shape.value_heads,
      .out = out + first * shape.outputs() + std::ptrdiff_t{head} * shape.value_dim,
      .out_stride = shape.outputs(),
  });
}

}  // namespace saker::kernels
