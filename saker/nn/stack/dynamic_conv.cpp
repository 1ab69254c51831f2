// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/stack/dynamic_conv.h"

#include <cstdint>
#include <vector>

namespace saker::nn {
namespace {

// Replaces each token's x by the one `offset` tokens earlier in its span; zero before the first.
mx::array shifted(const mx::array& x, int offset, const ForwardContext& context) {
  std::vector<std::int32_t> rows;
  rows.reserve(static_cast<std::size_t>(context.row_count()));
  for (const Span& span : context.spans()) {
    const auto first = static_cast<std::int32_t>(rows.size());
    for (int row = 0; row < span.row_count; ++row) {
      rows.push_back(row < offset ? context.row_count() : first + row - offset);
    }
  }
  const auto padded = mx::concatenate({x, mx::zeros({1, x.shape(1)}, x.dtype())}, 0);
  return mx::take(padded, mx::array(rows.data(), mx::Shape{context.row_count()}), 0);
}

}  // namespace

DynamicConv::DynamicConv(const Weights& weights, const DynamicConvOptions& options)
    : options_(options),
      base_(mx::reshape(
          weights.array("base_kernel", {2, options.taps, options.hidden}),
          {2, options.taps, options.hidden / options.group, options.group}
      )),
      projection_(
          weights / "kernel_projection",
          options.hidden,
          2 * options.taps * (options.hidden / options.group)
      ) {
  mx::eval(base_);
}

DynamicConv::Prepared DynamicConv::prepare(const mx::array& x, const ForwardContext& context)
    const {
  const int groups = options_.hidden / options_.group;
  const mx::Shape shape = {x.shape(0), 2, options_.taps, groups};
  const auto kernels = mx::split(mx::reshape(projection_(x, {}), shape), 2, 1);
  return {convolve(x, mx::squeeze(kernels[0], 1), 0, context), mx::squeeze(kernels[1], 1)};
}

mx::array DynamicConv::finish(
    const mx::array& x, const mx::array& dynamic, const ForwardContext& context
) const {
  return convolve(x, dynamic, 1, context);
}

mx::array DynamicConv::convolve(
    const mx::array& x, const mx::array& dynamic, int side, const ForwardContext& context
) const {
  const int rows = x.shape(0);
  const int groups = options_.hidden / options_.group;
  const auto base = mx::take(base_, side, 0);  // [taps, groups, group]
  auto sum = mx::zeros({rows, groups, options_.group}, x.dtype());
  for (int i = 0; i < options_.taps; ++i) {
    const auto values =
        mx::reshape(i == 0 ? x : shifted(x, i, context), {rows, groups, options_.group});
    const auto own = mx::expand_dims(mx::take(dynamic, i, 1), 2);  // [N, groups, 1]
    sum = sum + (mx::take(base, i, 0) + own) * values;
  }
  return mx::reshape(sum, {rows, options_.hidden});
}

}  // namespace saker::nn
