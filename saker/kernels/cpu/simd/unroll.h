// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loops that the compiler must unroll, with the counter as a constant, because it names registers.

namespace saker::kernels::SAKER_ISA {

// A compile-time number, as an argument.
template <int value>
struct Index {
  static constexpr int kValue = value;
};

template <int count, int at = 0, typename Function>
[[gnu::always_inline]] inline void unroll(const Function& function) {
  if constexpr (at < count) {
    function(Index<at>());
    unroll<count, at + 1>(function);
  }
}

}  // namespace saker::kernels::SAKER_ISA
