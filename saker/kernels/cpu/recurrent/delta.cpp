// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/cpu/dispatch/delta_bodies.h"
#include "saker/kernels/cpu/recurrent/key_sums.h"
#include "saker/kernels/cpu/recurrent/softplus.h"
#include "saker/kernels/cpu/simd/row_vectors.h"
#include "saker/kernels/cpu/simd/unroll.h"
#include "saker/kernels/cpu/simd/vec_curves.h"

namespace saker::kernels::SAKER_ISA {
namespace {

void convolve(const ConvolvedRow& row, int width) {
  each_vector(width, [&](int i, int lanes) {
    F32x16 sum = row.bias != nullptr ? load_lanes(row.bias + i, lanes) : zero();
    for (int tap = 0; tap < row.taps; ++tap) {
      const F32x16 weight = load_lanes(row.weights + tap * row.weight_stride + i, lanes);
      sum = fma(weight, load_lanes(row.inputs[tap] + i, lanes), sum);
    }
    store_lanes(row.out + i, row.activated ? logistic_times(sum, sum) : sum, lanes);
  });
}

void normalize(float* x, int width, float eps, float scale) {
  const F32x16 root = square_root(broadcast(square_sum(x, width) + eps));
  const F32x16 factor = div(broadcast(scale), root);
  each_vector(width, [&](int i, int lanes) {
    store_lanes(x + i, mul(load_lanes(x + i, lanes), factor), lanes);
  });
}

void decay(const DecayRow& row, int width) {
  const F32x16 rate = broadcast(row.rate);
  const F32x16 negative_rate = broadcast(-row.rate);
  const F32x16 bound = broadcast(row.lower_bound);
  const bool is_bounded = row.lower_bound != 0.0F;
  each_vector(width, [&](int i, int lanes) {
    const F32x16 step = add(load_lanes(row.steps + i, lanes), load_lanes(row.bias + i, lanes));
    const F32x16 exponent =
        is_bounded ? logistic_times(bound, mul(rate, step)) : mul(negative_rate, softplus(step));
    store_lanes(row.out + i, exp(exponent), lanes);
  });
}

// Values [first, first + kVectors * 16) of a head; the last vector has `lanes` lanes. While rows
// change it, their part of the state is a dense copy [key_dim][kVectors * 16]. Rows of the whole
// state are often a power of two apart and would evict each other from L1. `kByKey`: each key has a
// decay of its own.
template <int kVectors, bool kByKey>
class ValueColumns {
 public:
  ValueColumns(const DeltaHead& head, int first, int lanes)
      : head_(head), state_(head.scratch), first_(first), lanes_(lanes) {}

  void run() {
    known_ = read_state();
    for (int row = 0; row < head_.rows; ++row) {
      add_row(row);
    }
    write_state();
  }

 private:
  static constexpr int kStride = kVectors * kWidth;

  using Sums = KeySums<kVectors>;

  int lanes(int vector) const { return vector + 1 < kVectors ? kWidth : lanes_; }

  // Decays of a row's keys; null: it has one for all.
  const float* key_decays(int row) const {
    return kByKey ? head_.key_decays + row * head_.key_decay_stride : nullptr;
  }

  // The weight of a key's row of the state, which has not decayed yet, in S^T k.
  static float weight_of(const float* k, const float* decays, int key) {
    return kByKey ? k[key] * decays[key] : k[key];
  }

  // Copies the state; returns S^T k for the first row's key.
  Sums read_state() {
    Sums known;
    const float* const decays = key_decays(0);
    each_key(head_.key_dim, [&](int key, auto half) {
      const F32x16 weight = broadcast(weight_of(head_.k, decays, key));
      const float* from = head_.from + std::ptrdiff_t{key} * head_.value_dim + first_;
      unroll<kVectors>([&](auto i) {
        const F32x16 state = load_lanes(from + i.kValue * kWidth, lanes(i.kValue));
        store(state_at(key, i.kValue), state);
        known.add_product(half.kValue, i.kValue, state, weight);
      });
    });
    return known;
  }

  // One pass over the state: updates it, reads it for q, and sums S^T k for the next row's key.
  void add_row(int row) {
    const float* q = head_.q + row * head_.stride;
    const float* k = head_.k + row * head_.stride;
    const float* v = head_.v + row * head_.stride + first_;
    const int next = row + 1 < head_.rows ? row + 1 : row;
    const float* next_k = head_.k + next * head_.stride;
    const float* const decays = key_decays(row);
    const float* const next_decays = key_decays(next);
    const F32x16 decay = kByKey ? zero() : broadcast(head_.decay[row * head_.gate_stride]);
    const F32x16 beta = broadcast(head_.beta[row * head_.gate_stride]);
    F32x16 news[kVectors];
    unroll<kVectors>([&](auto i) {
      const F32x16 total = known_.total(i.kValue);
      const F32x16 expected = kByKey ? total : mul(decay, total);
      const F32x16 value = load_lanes(v + i.kValue * kWidth, lanes(i.kValue));
      news[i.kValue] = mul(sub(value, expected), beta);
    });
    Sums read;
    Sums known;
    float* const columns = state_;  // A local: stores cannot change it.
    each_key(head_.key_dim, [&](int key, auto half) {
      const F32x16 written = broadcast(k[key]);
      const F32x16 asked = broadcast(q[key]);
      const F32x16 asked_next = broadcast(weight_of(next_k, next_decays, key));
      const F32x16 own_decay = kByKey ? broadcast(decays[key]) : decay;
      unroll<kVectors>([&](auto i) {
        const F32x16 kept = mul(own_decay, load(columns + key * kStride + i.kValue * kWidth));
        const F32x16 state = fma(written, news[i.kValue], kept);
        store(columns + key * kStride + i.kValue * kWidth, state);
        read.add_product(half.kValue, i.kValue, state, asked);
        known.add_product(half.kValue, i.kValue, state, asked_next);
      });
    });
    known_ = known;
    float* out = head_.out + row * head_.out_stride + first_;
    unroll<kVectors>([&](auto i) {
      store_lanes(out + i.kValue * kWidth, read.total(i.kValue), lanes(i.kValue));
    });
  }

  void write_state() const {
    for (int key = 0; key < head_.key_dim; ++key) {
      float* to = head_.to + std::ptrdiff_t{key} * head_.value_dim + first_;
      unroll<kVectors>([&](auto i) {
        store_lanes(to + i.kValue * kWidth, load(state_at(key, i.kValue)), lanes(i.kValue));
      });
    }
  }

  float* state_at(int key, int vector) const { return state_ + key * kStride + vector * kWidth; }

  const DeltaHead& head_;
  float* state_;
  int first_;
  int lanes_;
  Sums known_;
};

// Runs the values from `first` on, kVectors vectors at a time; returns the first one that is left.
template <int kVectors, bool kByKey>
int run_columns(const DeltaHead& head, int first) {
  static_assert(kVectors * kWidth <= kDeltaColumns);
  for (; first + kVectors * kWidth <= head.value_dim; first += kVectors * kWidth) {
    ValueColumns<kVectors, kByKey>(head, first, kWidth).run();
  }
  return first;
}

template <bool kByKey>
void run_all_columns(const DeltaHead& head) {
  // Many rows: as many vectors as keep a row's sums in registers. A single row is bound by memory,
  // and long pieces of the state's rows load faster.
  constexpr int kForMany = kWideRegisters ? 2 : 1;
  int first =
      head.rows == 1 ? run_columns<4, kByKey>(head, 0) : run_columns<kForMany, kByKey>(head, 0);
  first = run_columns<1, kByKey>(head, first);
  if (first < head.value_dim) {
    ValueColumns<1, kByKey>(head, first, head.value_dim - first).run();
  }
}

void run_head(const DeltaHead& head) {
  head.key_decays != nullptr ? run_all_columns<true>(head) : run_all_columns<false>(head);
}

}  // namespace

void scan_head(const ScanHead& head);  // scan.cpp

extern const DeltaBodies delta_bodies;

const DeltaBodies delta_bodies = {convolve, normalize, decay, run_head, scan_head};

}  // namespace saker::kernels::SAKER_ISA
