// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/recurrent/convolved_spans.h"

#include "saker/base/error.h"
#include "saker/kernels/layout/row_tiles.h"
#include "saker/kernels/ops/strided_rows.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace saker::kernels {

std::vector<SpanArrays> span_arrays(
    const SpanRows& spans,
    std::size_t arrays,
    const std::vector<mx::array>& inputs,
    std::vector<mx::array>& outputs
) {
  std::size_t from = inputs.size() - spans.size() * arrays;
  std::size_t to = outputs.size() - spans.size() * arrays;
  std::vector<SpanArrays> result;
  result.reserve(spans.size());
  for (const auto& [first_row, row_count] : spans) {
    SpanArrays& span = result.emplace_back(SpanArrays{first_row, row_count, {}, {}});
    for (std::size_t i = 0; i < arrays; ++i) {
      span.from.push_back(inputs[from++].data<float>());
      span.to.push_back(outputs[to++].data<float>());
    }
  }
  return result;
}

const float* SpanConvolution::input_row(const SpanArrays& span, const HeadRows& x, int index)
    const {
  return index >= 0 ? StridedRows::at(x, span.first_row + index, 0)
                    : span.from.front() + std::ptrdiff_t{taps - 1 + index} * channels;
}

void SpanConvolution::run(const SpanArrays& span, const HeadRows& x, float* out) const {
  constexpr int kBlock = 512;  // Channels of one call.
  const int blocks = (channels + kBlock - 1) / kBlock;
  each_row(span.row_count * blocks, std::int64_t{kBlock} * (taps + 1), [&](int index) {
    const int row = index / blocks;
    const int first = index % blocks * kBlock;
    std::array<const float*, kMaxConvolutionTaps> rows;
    for (int tap = 0; tap < taps; ++tap) {
      rows.at(static_cast<std::size_t>(tap)) = input_row(span, x, row + tap - taps + 1) + first;
    }
    bodies->convolve(
        {.inputs = rows.data(),
         .weights = weights + first,
         .weight_stride = channels,
         .taps = taps,
         .out = out + std::ptrdiff_t{span.first_row + row} * channels + first,
         .bias = bias != nullptr ? bias + first : nullptr,
         .activated = activated},
        std::min(kBlock, channels - first)
    );
  });
}

void SpanConvolution::keep(const SpanArrays& span, const HeadRows& x) const {
  const int kept = taps - 1;
  const std::size_t bytes = static_cast<std::size_t>(channels) * sizeof(float);
  for (int i = 0; i < kept; ++i) {
    float* to = span.to.front() + std::ptrdiff_t{i} * channels;
    std::memcpy(to, input_row(span, x, span.row_count - kept + i), bytes);
  }
}

void check_spans(
    std::string_view what,
    const std::vector<RecurrentSpan>& spans,
    int rows,
    const std::vector<mx::Shape>& state
) {
  int next = 0;
  bool follow = true;
  for (const RecurrentSpan& span : spans) {
    follow = follow && span.first_row == next && span.row_count > 0 &&
             std::ranges::equal(span.state, state, [](const mx::array& x, const mx::Shape& shape) {
               return x.shape() == shape;
             });
    next += span.row_count;
  }
  require(
      follow && next == rows,
      ErrorCode::kInternal,
      "[{}] spans of {} rows do not fit {} rows",
      what,
      next,
      rows
  );
}

ConvolvedReference convolved_reference(
    const mx::array& rows, const mx::array& kept, const ConvolutionWeights& weights, bool activated
) {
  const int taps = weights.taps.shape(0);
  const int channels = weights.taps.shape(1);
  const int count = rows.shape(0);
  const auto all = mx::concatenate({kept, rows}, 0);
  auto sum = mx::zeros_like(rows);
  for (int tap = 0; tap < taps; ++tap) {
    const auto weight = mx::slice(weights.taps, {tap, 0}, {tap + 1, channels});
    sum = sum + weight * mx::slice(all, {tap, 0}, {tap + count, channels});
  }
  if (weights.bias) {
    sum = sum + *weights.bias;
  }
  return {
      activated ? sum * mx::sigmoid(sum) : sum,
      mx::slice(all, {count, 0}, {count + taps - 1, channels}),
  };
}

}  // namespace saker::kernels
