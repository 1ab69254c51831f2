// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/recurrent/kda.h"

#include "saker/base/error.h"
#include "saker/kernels/cpu/dispatch/delta_bodies.h"
#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/cpu/runtime/aligned_bytes.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/layout/row_tiles.h"
#include "saker/kernels/ops/cpu_operation.h"
#include "saker/kernels/ops/recurrent/convolved_spans.h"
#include "saker/kernels/ops/strided_rows.h"

#include <cmath>
#include <utility>

namespace saker::kernels {
namespace {

constexpr float kUnitEps = 1e-6F;
constexpr std::size_t kStreams = 3;  // q, k and v.
constexpr std::size_t kKdaArrays = kStreams + 1;

float query_factor(const KdaShape& shape) {
  return 1.0F / std::sqrt(static_cast<float>(shape.head_dim));
}

// The task that runs on the stream's thread.
struct KdaTask {
  const DeltaBodies* bodies;
  KdaShape shape;
  std::vector<SpanArrays> spans;
  int row_count;
  std::array<StridedRows, kStreams> rows;
  StridedRows steps;
  StridedRows shares;
  std::array<const float*, kStreams> convolutions;
  const float* decay_rate;
  const float* step_bias;
  float lower_bound;
  float* out;

  void operator()() {
    // The stream's thread keeps this memory, so that passes do not fault in fresh pages each time.
    thread_local AlignedBytes memory;
    const std::size_t part = static_cast<std::size_t>(row_count) * width();
    const std::size_t heads = static_cast<std::size_t>(shape.heads);
    memory.reserve(
        ((kStreams + 1) * part + static_cast<std::size_t>(row_count) * heads) * sizeof(float)
    );
    auto* const mixed = reinterpret_cast<float*>(memory.data());
    for (std::size_t stream = 0; stream < kStreams; ++stream) {
      convolve(stream, mixed + stream * part);
    }
    float* const decays = mixed + kStreams * part;
    float* const betas = decays + part;
    prepare_heads(mixed, mixed + part, decays, betas);
    const int tasks = static_cast<int>(spans.size()) * shape.heads;
    thread_pool().run(tasks, [&](int task) {
      const SpanArrays& span = spans[static_cast<std::size_t>(task / shape.heads)];
      run_head(span, task % shape.heads, mixed, decays, betas);
    });
  }

 private:
  std::size_t width() const { return static_cast<std::size_t>(shape.width()); }

  void convolve(std::size_t stream, float* to) {
    const SpanConvolution convolution{
        .bodies = bodies,
        .weights = convolutions.at(stream),
        .bias = nullptr,
        .taps = shape.taps,
        .channels = shape.width(),
        .activated = true,
    };
    const HeadRows x = rows.at(stream).resolve();
    for (const SpanArrays& span : spans) {
      const SpanArrays own{
          span.first_row, span.row_count, {span.from.at(stream)}, {span.to.at(stream)}
      };
      convolution.run(own, x, to);
      convolution.keep(own, x);
    }
  }

  // Makes q and k units; the gates of each head.
  void prepare_heads(float* q, float* k, float* decays, float* betas) {
    const HeadRows given = steps.resolve();
    const HeadRows parts = shares.resolve();
    const int dim = shape.head_dim;
    each_row(row_count * shape.heads, 16L * dim, [&](int index) {
      const int row = index / shape.heads;
      const int head = index % shape.heads;
      const std::ptrdiff_t at = std::ptrdiff_t{row} * shape.width() + std::ptrdiff_t{head} * dim;
      bodies->normalize(q + at, dim, kUnitEps, query_factor(shape));
      bodies->normalize(k + at, dim, kUnitEps, 1.0F);
      const std::ptrdiff_t column = std::ptrdiff_t{head} * dim;
      bodies->decay(
          {StridedRows::at(given, row, 0) + column,
           step_bias + column,
           decay_rate[head],
           decays + at,
           lower_bound},
          dim
      );
      const double share = StridedRows::at(parts, row, 0)[head];
      betas[index] = static_cast<float>(1.0 / (1.0 + std::exp(-share)));
    });
  }

  void run_head(
      const SpanArrays& span, int head, const float* mixed, const float* decays, const float* betas
  ) const {
    // Kept by each thread of the pool, as above.
    thread_local AlignedBytes scratch;
    scratch.reserve(static_cast<std::size_t>(shape.head_dim) * kDeltaColumns * sizeof(float));
    const std::ptrdiff_t state = std::ptrdiff_t{head} * shape.head_dim * shape.head_dim;
    const std::ptrdiff_t part = std::ptrdiff_t{row_count} * shape.width();
    const std::ptrdiff_t at =
        std::ptrdiff_t{span.first_row} * shape.width() + std::ptrdiff_t{head} * shape.head_dim;
    bodies->run_head({
        .from = span.from.back() + state,
        .to = span.to.back() + state,
        .scratch = reinterpret_cast<float*>(scratch.data()),
        .key_dim = shape.head_dim,
        .value_dim = shape.head_dim,
        .rows = span.row_count,
        .q = mixed + at,
        .k = mixed + part + at,
        .v = mixed + 2 * part + at,
        .stride = shape.width(),
        .decay = nullptr,
        .beta = betas + std::ptrdiff_t{span.first_row} * shape.heads + head,
        .gate_stride = shape.heads,
        .out = out + at,
        .out_stride = shape.width(),
        .key_decays = decays + at,
        .key_decay_stride = shape.width(),
    });
  }
};

// Inputs: q, k, v, steps, shares, three convolutions, decay_rate, step_bias, then the states.
// Outputs: y, then the states.
struct KdaBody {
  const DeltaBodies* bodies;
  KdaShape shape;
  float lower_bound;
  SpanRows spans;

  auto operator()(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) const {
    return KdaTask{
        .bodies = bodies,
        .shape = shape,
        .spans = span_arrays(spans, kKdaArrays, inputs, outputs),
        .row_count = inputs[0].shape(0),
        .rows = {StridedRows(inputs[0]), StridedRows(inputs[1]), StridedRows(inputs[2])},
        .steps = StridedRows(inputs[3]),
        .shares = StridedRows(inputs[4]),
        .convolutions = {inputs[5].data<float>(), inputs[6].data<float>(), inputs[7].data<float>()},
        .decay_rate = inputs[8].data<float>(),
        .step_bias = inputs[9].data<float>(),
        .lower_bound = lower_bound,
        .out = outputs[0].data<float>(),
    };
  }
};

void check_kda(
    const KdaInputs& inputs, const KdaShape& shape, const std::vector<RecurrentSpan>& spans
) {
  const int rows = inputs.steps.shape(0);
  const mx::Shape wide{rows, shape.width()};
  bool fits = shape.taps >= 1 && shape.taps <= kMaxConvolutionTaps &&
              inputs.steps.shape() == wide && inputs.shares.shape() == mx::Shape{rows, shape.heads};
  for (const mx::array& x : inputs.rows) {
    fits = fits && x.shape() == wide;
  }
  require(
      fits,
      ErrorCode::kInternal,
      "[kda] rows of {} elements for {} heads of {}",
      inputs.steps.size(),
      shape.heads,
      shape.head_dim
  );
  const mx::Shape kept{shape.taps - 1, shape.width()};
  const mx::Shape memory{shape.heads, shape.head_dim, shape.head_dim};
  check_spans("kda", spans, rows, {kept, kept, kept, memory});
}

// x / |x| * scale over the last axis.
mx::array unit_rows(const mx::array& x, float scale) {
  const auto squares = mx::sum(mx::square(x), -1, true);
  return x * mx::rsqrt(squares + mx::array(kUnitEps)) * mx::array(scale);
}

// One span of the reference; its rows are y [T, width]. `decays` [T, width], `betas` [T, heads].
RecurrentResult kda_span(
    const std::array<mx::array, kStreams>& rows,
    const mx::array& decays,
    const mx::array& betas,
    const KdaWeights& weights,
    const KdaShape& shape,
    const StateArrays& state
) {
  const int count = decays.shape(0);
  const mx::Shape heads{count, shape.heads, shape.head_dim};
  std::vector<mx::array> mixed;
  StateArrays after;
  for (std::size_t stream = 0; stream < kStreams; ++stream) {
    auto convolved = convolved_reference(
        rows.at(stream), state.at(stream), {weights.convolutions.at(stream)}, /*activated=*/true
    );
    mixed.push_back(mx::reshape(convolved.rows, heads));
    after.push_back(std::move(convolved.kept));
  }
  const auto q = unit_rows(mixed[0], query_factor(shape));
  const auto k = unit_rows(mixed[1], 1.0F);
  const auto by_head = mx::reshape(decays, heads);
  auto memory = state.back();
  std::vector<mx::array> outputs;
  outputs.reserve(static_cast<std::size_t>(count));
  for (int row = 0; row < count; ++row) {
    const auto at = [&](const mx::array& x) { return mx::take(x, row, 0); };
    const auto key = mx::expand_dims(at(k), 2);  // [heads, D, 1]
    memory = memory * mx::expand_dims(at(by_head), 2);
    const auto expected = mx::sum(memory * key, 1);
    const auto news = (at(mixed[2]) - expected) * mx::reshape(at(betas), {shape.heads, 1});
    memory = memory + key * mx::expand_dims(news, 1);
    outputs.push_back(mx::sum(memory * mx::expand_dims(at(q), 2), 1));
  }
  after.push_back(memory);
  return {mx::reshape(mx::stack(outputs), {count, shape.width()}), {std::move(after)}};
}

}  // namespace

StateArrays empty_kda_state(const KdaShape& shape) {
  const auto kept = mx::zeros({shape.taps - 1, shape.width()}, mx::float32);
  return {kept, kept, kept, mx::zeros({shape.heads, shape.head_dim, shape.head_dim}, mx::float32)};
}

RecurrentResult kda(
    const KdaInputs& inputs,
    const KdaWeights& weights,
    const KdaShape& shape,
    const std::vector<RecurrentSpan>& spans
) {
  check_kda(inputs, shape, spans);
  if (!on_cpu()) {
    return kda_reference(inputs, weights, shape, spans);
  }
  std::vector<mx::array> arrays;
  for (const mx::array& x : inputs.rows) {
    arrays.push_back(mx::astype(x, mx::float32));
  }
  arrays.push_back(mx::astype(inputs.steps, mx::float32));
  arrays.push_back(mx::astype(inputs.shares, mx::float32));
  arrays.insert(arrays.end(), weights.convolutions.begin(), weights.convolutions.end());
  arrays.push_back(weights.decay_rate);
  arrays.push_back(weights.step_bias);
  return run_spans(
      spans,
      std::move(arrays),
      inputs.steps.shape(),
      [&](SpanRows rows, const auto& shapes, const auto& all) {
        return cpu_operation(
            "SakerKda",
            shapes,
            all,
            KdaBody{kernel_table().delta, shape, weights.lower_bound, std::move(rows)}
        );
      }
  );
}

RecurrentResult kda_reference(
    const KdaInputs& inputs,
    const KdaWeights& weights,
    const KdaShape& shape,
    const std::vector<RecurrentSpan>& spans
) {
  check_kda(inputs, shape, spans);
  const auto steps = mx::astype(inputs.steps, mx::float32) + weights.step_bias;
  const mx::Shape heads{steps.shape(0), shape.heads, shape.head_dim};
  const auto by_head = mx::reshape(steps, heads);
  const auto rates = mx::reshape(weights.decay_rate, {shape.heads, 1});
  const auto exponents = weights.lower_bound != 0.0F
                             ? mx::array(weights.lower_bound) * mx::sigmoid(rates * by_head)
                             : -rates * mx::logaddexp(by_head, mx::array(0.0F));
  const auto decays = mx::reshape(mx::exp(exponents), steps.shape());
  const auto betas = mx::sigmoid(mx::astype(inputs.shares, mx::float32));
  std::vector<mx::array> outputs;
  RecurrentResult result{mx::array(0.0F), {}};
  for (const RecurrentSpan& span : spans) {
    const int end = span.first_row + span.row_count;
    const auto cut = [&](const mx::array& x) {
      return mx::slice(mx::astype(x, mx::float32), {span.first_row, 0}, {end, x.shape(1)});
    };
    auto part = kda_span(
        {cut(inputs.rows[0]), cut(inputs.rows[1]), cut(inputs.rows[2])},
        cut(decays),
        cut(betas),
        weights,
        shape,
        span.state
    );
    outputs.push_back(std::move(part.rows));
    result.states.push_back(std::move(part.states.front()));
  }
  result.rows = mx::astype(mx::concatenate(outputs, 0), inputs.rows[0].dtype());
  return result;
}

}  // namespace saker::kernels
