// SPDX-License-Identifier: Apache-2.0
#pragma once

// The operations of vec.h by name, in one instruction set, from memory to memory.

#include <cstdint>
#include <span>

namespace saker::kernels {

struct VecInput {
  float x[16];
  float y[16];
  float z[16];
  std::uint32_t a[16];
  std::uint32_t b[16];
  std::uint16_t halves[16];
  int n;
};

// What look_up_integers looks up.
inline constexpr std::int8_t kByteTable[16] = {
    0, 1, -1, 2, -2, 5, -7, 12, -12, 64, -65, 100, -101, 126, 127, -128
};

// The table of look_up_bytes.
inline constexpr std::uint8_t kCodeTable[16] = {
    0, 255, 3, 128, 7, 64, 200, 1, 2, 127, 129, 90, 33, 17, 250, 5
};

struct VecOutput {
  std::uint32_t lanes[16];
};

struct VecOperation {
  const char* name;
  void (*run)(const VecInput& in, VecOutput& out);  // Null where the set lacks it.
};

struct VecOperations {
  const VecOperation* list;
  int count;
  bool fused_multiply_add;
};

struct VecSet {
  const char* name;
  const VecOperations& operations;
};

// One per instruction set that was compiled.
std::span<const VecSet> vec_sets();

}  // namespace saker::kernels
