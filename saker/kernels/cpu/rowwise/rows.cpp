// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/cpu/dispatch/row_bodies.h"
#include "saker/kernels/cpu/simd/row_vectors.h"
#include "saker/kernels/cpu/simd/vec.h"
#include "saker/kernels/cpu/simd/vec_curves.h"

namespace saker::kernels::SAKER_ISA {
namespace {

// Stores the sum with the residual if there is one; returns the row to norm.
const float* row_to_norm(const NormRow& row, int width) {
  if (row.residual == nullptr) {
    return row.x;
  }
  const F32x16 scale = broadcast(row.scale);
  const F32x16 part = broadcast(row.residual_scale);
  each_vector(width, [&](int i, int lanes) {
    const F32x16 added = mul(load_lanes(row.residual + i, lanes), part);
    store_lanes(row.sum + i, mul(add(load_lanes(row.x + i, lanes), added), scale), lanes);
  });
  return row.sum;
}

void rms_norm(const NormRow& row, int width, float eps) {
  const float* x = row_to_norm(row, width);
  const float mean = square_sum(x, width) / static_cast<float>(width);
  const F32x16 root = square_root(broadcast(mean + eps));
  const F32x16 factor = div(broadcast(1.0F), root);
  each_vector(width, [&](int i, int lanes) {
    const F32x16 scaled = mul(load_lanes(x + i, lanes), factor);
    store_lanes(row.normed + i, mul(scaled, load_lanes(row.weight + i, lanes)), lanes);
  });
}

void layer_norm(const NormRow& row, int width, float eps) {
  const float* x = row_to_norm(row, width);
  const auto count = static_cast<float>(width);
  const float sum = row_sum(width, [x](F32x16 sums, int i, int lanes) {
    return add(sums, load_lanes(x + i, lanes));
  });
  const F32x16 mean = broadcast(sum / count);
  each_vector(width, [&](int i, int lanes) {
    store_lanes(row.normed + i, sub(load_lanes(x + i, lanes), mean), lanes);
  });
  const float variance = square_sum(row.normed, width) / count;
  const F32x16 factor = div(broadcast(1.0F), square_root(broadcast(variance + eps)));
  each_vector(width, [&](int i, int lanes) {
    const F32x16 scaled = mul(load_lanes(row.normed + i, lanes), factor);
    const F32x16 weighted = mul(scaled, load_lanes(row.weight + i, lanes));
    const F32x16 bias = row.bias != nullptr ? load_lanes(row.bias + i, lanes) : zero();
    store_lanes(row.normed + i, add(weighted, bias), lanes);
  });
}

void rope(const RopeRow& row, int half, int width) {
  each_vector(half, [&](int i, int lanes) {
    const F32x16 a = load_lanes(row.x + i, lanes);
    const F32x16 b = load_lanes(row.x + half + i, lanes);
    const F32x16 cos = load_lanes(row.cos + i, lanes);
    const F32x16 sin = load_lanes(row.sin + i, lanes);
    store_lanes(row.out + i, sub(mul(a, cos), mul(b, sin)), lanes);
    store_lanes(row.out + half + i, add(mul(b, cos), mul(a, sin)), lanes);
  });
  const int rotated = 2 * half;
  each_vector(width - rotated, [&](int i, int lanes) {
    store_lanes(row.out + rotated + i, load_lanes(row.x + rotated + i, lanes), lanes);
  });
}

void rope_neighbours(const RopeRow& row, int half, int width) {
  for (int i = 0; i < half; ++i) {
    const float a = row.x[2 * i];
    const float b = row.x[2 * i + 1];
    row.out[2 * i] = a * row.cos[i] - b * row.sin[i];
    row.out[2 * i + 1] = b * row.cos[i] + a * row.sin[i];
  }
  for (int i = 2 * half; i < width; ++i) {
    row.out[i] = row.x[i];
  }
}

template <typename Curve>
inline void gated(const GatedRow& row, int width, Curve curve) {
  each_vector(width, [&](int i, int lanes) {
    const F32x16 activated = curve(load_lanes(row.gate + i, lanes));
    store_lanes(row.out + i, mul(activated, load_lanes(row.up + i, lanes)), lanes);
  });
}

void gated_logistic(const GatedRow& row, int width) {
  each_vector(width, [&](int i, int lanes) {
    store_lanes(
        row.out + i,
        logistic_times(load_lanes(row.up + i, lanes), load_lanes(row.gate + i, lanes)),
        lanes
    );
  });
}

void gated_silu(const GatedRow& row, int width) {
  gated(row, width, [](F32x16 x) { return logistic_times(x, x); });
}

// (1 + tanh(u)) / 2 is the logistic function of 2 u; this form keeps small results accurate.
void gated_gelu_tanh(const GatedRow& row, int width) {
  gated(row, width, [](F32x16 x) {
    const F32x16 cubic = fma(mul(mul(x, x), broadcast(0.044715F)), x, x);
    return logistic_times(x, mul(cubic, broadcast(1.5957691216057308F)));  // 2 sqrt(2 / pi)
  });
}

// (1 + erf(z)) / 2 is erfc(-z) / 2 for z < 0 and 1 - erfc(z) / 2 otherwise; this form keeps small
// results accurate.
void gated_gelu(const GatedRow& row, int width) {
  gated(row, width, [](F32x16 x) {
    const F32x16 z = mul(absolute(x), broadcast(0.70710678118654752F));
    const F32x16 tail = mul(broadcast(0.5F), erfc_of_positive(z));
    return mul(x, where_negative(x, tail, sub(broadcast(1.0F), tail)));
  });
}

// NaN stays.
void gated_swiglu_oai(const GatedRow& row, int width) {
  const F32x16 limit = broadcast(7.0F);
  each_vector(width, [&](int i, int lanes) {
    const F32x16 gate = min(limit, load_lanes(row.gate + i, lanes));
    const F32x16 up = max(broadcast(-7.0F), min(limit, load_lanes(row.up + i, lanes)));
    const F32x16 activated = logistic_times(gate, mul(gate, broadcast(1.702F)));
    store_lanes(row.out + i, mul(activated, add(up, broadcast(1.0F))), lanes);
  });
}

// exp(y) - 1 is 2 t / (1 - t) with t = tanh(y / 2), which keeps small results accurate; y < 0.
void xielu(const XieluRow& row, int width) {
  const F32x16 one = broadcast(1.0F);
  each_vector(width, [&](int i, int lanes) {
    const F32x16 x = load_lanes(row.x + i, lanes);
    const F32x16 line = mul(x, broadcast(row.linear));
    const F32x16 above = fma(mul(x, x), broadcast(row.positive), line);
    const F32x16 t = tanh(mul(min(broadcast(row.limit), x), broadcast(0.5F)));
    const F32x16 shrunk = div(add(t, t), sub(one, t));
    const F32x16 below = fma(sub(shrunk, x), broadcast(row.negative), line);
    store_lanes(row.out + i, where_nan(x, x, where_negative(sub(zero(), x), above, below)), lanes);
  });
}

void softcap(const float* x, float cap, float* out, int width) {
  const F32x16 limit = broadcast(cap);
  each_vector(width, [&](int i, int lanes) {
    store_lanes(out + i, mul(limit, tanh(div(load_lanes(x + i, lanes), limit))), lanes);
  });
}

}  // namespace

extern const RowBodies row_bodies;

const RowBodies row_bodies = {
    rms_norm,
    layer_norm,
    rope,
    rope_neighbours,
    gated_logistic,
    gated_silu,
    gated_gelu_tanh,
    gated_gelu,
    gated_swiglu_oai,
    xielu,
    softcap,
};

}  // namespace saker::kernels::SAKER_ISA
