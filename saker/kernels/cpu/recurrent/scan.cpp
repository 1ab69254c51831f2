// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/cpu/dispatch/scan_bodies.h"
#include "saker/kernels/cpu/recurrent/key_sums.h"
#include "saker/kernels/cpu/simd/row_vectors.h"
#include "saker/kernels/cpu/simd/unroll.h"

namespace saker::kernels::SAKER_ISA {
namespace {

// Columns [first, first + kVectors * 16) of a head's state; the last vector has `lanes` lanes.
// Between rows they are a dense copy: rows of the whole state are often a power of two apart and
// would evict each other from L1. The first row reads the state itself, the last one writes it.
template <int kVectors>
class ScanColumns {
 public:
  ScanColumns(const ScanHead& head, int first, int lanes)
      : head_(head), first_(first), lanes_(lanes) {}

  void run() const {
    for (int row = 0; row < head_.rows; ++row) {
      const bool is_first = row == 0;
      const bool is_last = row + 1 == head_.rows;
      add_row(
          row,
          is_first ? head_.from + first_ : head_.scratch,
          is_first ? head_.head_dim : kDense,
          is_last ? head_.to + first_ : head_.scratch,
          is_last ? head_.head_dim : kDense
      );
    }
  }

 private:
  static constexpr std::ptrdiff_t kDense = kVectors * kWidth;

  int lanes(int vector) const { return vector + 1 < kVectors ? kWidth : lanes_; }

  void add_row(
      int row, const float* from, std::ptrdiff_t from_stride, float* to, std::ptrdiff_t to_stride
  ) const {
    const float* b = head_.b + row * head_.stride;
    const float* c = head_.c + row * head_.stride;
    const float* x = head_.x + row * head_.stride + first_;
    const F32x16 decay = broadcast(head_.decay[row * head_.step_stride]);
    const F32x16 step = broadcast(head_.step[row * head_.step_stride]);
    F32x16 news[kVectors];
    unroll<kVectors>([&](auto i) {
      news[i.kValue] = mul(step, load_lanes(x + i.kValue * kWidth, lanes(i.kValue)));
    });
    KeySums<kVectors> read;
    each_key(head_.state_dim, [&](int key, auto half) {
      const F32x16 written = broadcast(b[key]);
      const F32x16 asked = broadcast(c[key]);
      unroll<kVectors>([&](auto i) {
        const int column = i.kValue * kWidth;
        const F32x16 old = load_lanes(from + key * from_stride + column, lanes(i.kValue));
        const F32x16 state = fma(written, news[i.kValue], mul(decay, old));
        store_lanes(to + key * to_stride + column, state, lanes(i.kValue));
        read.add_product(half.kValue, i.kValue, state, asked);
      });
    });
    const F32x16 skip = broadcast(head_.skip);
    float* out = head_.out + row * head_.out_stride + first_;
    unroll<kVectors>([&](auto i) {
      const F32x16 value = load_lanes(x + i.kValue * kWidth, lanes(i.kValue));
      store_lanes(out + i.kValue * kWidth, fma(skip, value, read.total(i.kValue)), lanes(i.kValue));
    });
  }

  const ScanHead& head_;
  int first_;
  int lanes_;
};

// Runs the columns from `first` on, kVectors vectors at a time; returns the first one that is left.
template <int kVectors>
int scan_columns(const ScanHead& head, int first) {
  static_assert(kVectors * kWidth <= kScanColumns);
  for (; first + kVectors * kWidth <= head.head_dim; first += kVectors * kWidth) {
    ScanColumns<kVectors>(head, first, kWidth).run();
  }
  return first;
}

}  // namespace

void scan_head(const ScanHead& head);

void scan_head(const ScanHead& head) {
  // As for the delta rule: sums in registers for many rows, long pieces of memory for one.
  constexpr int kForMany = kWideRegisters ? 4 : 1;
  int first = head.rows == 1 ? scan_columns<4>(head, 0) : scan_columns<kForMany>(head, 0);
  first = scan_columns<1>(head, first);
  if (first < head.head_dim) {
    ScanColumns<1>(head, first, head.head_dim - first).run();
  }
}

}  // namespace saker::kernels::SAKER_ISA
