// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/cpu/row_vectors.h"
#include "saker/kernels/cpu/unroll.h"
#include "saker/kernels/cpu/vec_curves.h"
#include "saker/kernels/delta/bodies.h"

namespace saker::kernels::SAKER_ISA {
namespace {

void convolve(const ConvolvedRow& row, int width) {
  each_vector(width, [&](int i, int lanes) {
    F32x16 sum = zero();
    for (int tap = 0; tap < row.taps; ++tap) {
      const F32x16 weight = load_lanes(row.weights + tap * row.weight_stride + i, lanes);
      sum = fma(weight, load_lanes(row.inputs[tap] + i, lanes), sum);
    }
    store_lanes(row.out + i, logistic_times(sum, sum), lanes);
  });
}

void normalize(float* x, int width, float eps, float scale) {
  const F32x16 root = square_root(broadcast(square_sum(x, width) + eps));
  const F32x16 factor = div(broadcast(scale), root);
  each_vector(width, [&](int i, int lanes) {
    store_lanes(x + i, mul(load_lanes(x + i, lanes), factor), lanes);
  });
}

// Sums over the keys: even and odd ones apart, so that additions need not wait for each other.
template <int kVectors>
struct KeySums {
  F32x16 sums[2][kVectors];

  KeySums() {
    for (auto& half : sums) {
      for (F32x16& sum : half) {
        sum = zero();
      }
    }
  }

  [[gnu::always_inline]] void add_product(int key, int vector, F32x16 a, F32x16 b) {
    F32x16& sum = sums[key % 2][vector];
    sum = fma(a, b, sum);
  }

  [[gnu::always_inline]] F32x16 total(int vector) const {
    return add(sums[0][vector], sums[1][vector]);
  }
};

// kVectors vectors of values from `first` on; the last vector has `lanes`.
template <int kVectors>
void run_values(const DeltaHead& head, int first, int lanes) {
  const std::ptrdiff_t width = head.value_dim;
  const auto load_at = [lanes](const float* at, int vector) {
    return load_lanes(at + vector * kWidth, vector + 1 < kVectors ? kWidth : lanes);
  };
  const auto store_at = [lanes](float* at, int vector, F32x16 value) {
    store_lanes(at + vector * kWidth, value, vector + 1 < kVectors ? kWidth : lanes);
  };
  const float* from = head.from + first;
  float* to = head.to + first;
  for (int row = 0; row < head.rows; ++row) {
    const float* q = head.q + row * head.stride;
    const float* k = head.k + row * head.stride;
    const float* v = head.v + row * head.stride + first;
    KeySums<kVectors> known;
    for (int key = 0; key < head.key_dim; ++key) {
      const F32x16 weight = broadcast(k[key]);
      unroll<kVectors>([&](auto i) {
        known.add_product(key, i.kValue, load_at(from + key * width, i.kValue), weight);
      });
    }
    const F32x16 decay = broadcast(head.decay[row * head.gate_stride]);
    const F32x16 beta = broadcast(head.beta[row * head.gate_stride]);
    F32x16 news[kVectors];
    unroll<kVectors>([&](auto i) {
      const F32x16 expected = mul(decay, known.total(i.kValue));
      news[i.kValue] = mul(sub(load_at(v, i.kValue), expected), beta);
    });
    KeySums<kVectors> read;
    for (int key = 0; key < head.key_dim; ++key) {
      const F32x16 written = broadcast(k[key]);
      const F32x16 asked = broadcast(q[key]);
      unroll<kVectors>([&](auto i) {
        const F32x16 kept = mul(decay, load_at(from + key * width, i.kValue));
        const F32x16 state = fma(written, news[i.kValue], kept);
        store_at(to + key * width, i.kValue, state);
        read.add_product(key, i.kValue, state, asked);
      });
    }
    unroll<kVectors>([&](auto i) {
      store_at(head.out + row * head.out_stride + first, i.kValue, read.total(i.kValue));
    });
    from = to;
  }
}

// So many values at a time that their part of the state stays in the first cache from row to row.
void run_head(const DeltaHead& head) {
  constexpr int kVectors = 4;
  int first = 0;
  for (; first + kVectors * kWidth <= head.value_dim; first += kVectors * kWidth) {
    run_values<kVectors>(head, first, kWidth);
  }
  for (; first < head.value_dim; first += kWidth) {
    const int rest = head.value_dim - first;
    run_values<1>(head, first, rest < kWidth ? rest : kWidth);
  }
}

}  // namespace

extern const DeltaBodies delta_bodies;

const DeltaBodies delta_bodies = {convolve, normalize, run_head};

}  // namespace saker::kernels::SAKER_ISA
