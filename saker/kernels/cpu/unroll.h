// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loops that the compiler must unroll, with the counter as a constant: registers are named by it.

namespace saker::kernels::SAKER_ISA {

// A number known to the compiler, as an argument.
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
