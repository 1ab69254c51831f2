// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/packing/narrow.h"

#include "saker/kernels/layout/planes.h"

#include <cstring>

namespace saker::kernels {
namespace {

template <typename Planes>
void narrow_run(const std::uint32_t (*lines)[kBlockRows], std::uint32_t (*planes)[kBlockRows]) {
  constexpr std::uint32_t kLow = Planes::mask(0, Planes::kLow);
  constexpr std::uint32_t kHigh = Planes::mask(0, Planes::kHigh);
  std::memset(planes, 0, Planes::kCode * sizeof(*planes));
  for (int line = 0; line < Planes::kField; ++line) {
    for (int lane = 0; lane < kBlockRows; ++lane) {
      const std::uint32_t word = lines[line][lane];
      planes[Planes::low_line(line)][lane] |= (word & kLow) << Planes::low_shift(line);
      if constexpr (Planes::kHigh > 0) {
        planes[Planes::high_line(line)][lane] |= (word >> Planes::kLow & kHigh)
                                                 << Planes::high_shift(line);
      }
    }
  }
}

template <typename Planes>
std::uint32_t code_of_run(const std::byte* planes, int k, int lane) {
  constexpr int kCodes = 32 / Planes::kField;
  const int line = k / kCodes;
  const int field = k % kCodes * Planes::kField;
  const auto bits = [&](int plane, int first, int count) {
    std::uint32_t word = 0;
    std::memcpy(&word, planes + sizeof(word) * (plane * kBlockRows + lane), sizeof(word));
    return word >> (field + first) & ((1U << count) - 1U);
  };
  std::uint32_t code = bits(Planes::low_line(line), Planes::low_shift(line), Planes::kLow);
  if constexpr (Planes::kHigh > 0) {
    code |= bits(Planes::high_line(line), Planes::high_shift(line), Planes::kHigh) << Planes::kLow;
  }
  return code;
}

}  // namespace

void narrow_lines(
    const std::uint32_t (*lines)[kBlockRows], int count, int code_bits, std::byte* to
) {
  with_planes(code_bits, [&](auto planes) {
    using Kind = decltype(planes);
    for (int line = 0; line < count; line += Kind::kField) {
      std::uint32_t run[Kind::kCode][kBlockRows];
      narrow_run<Kind>(lines + line, run);
      std::memcpy(to, run, sizeof(run));
      to += sizeof(run);
    }
  });
}

std::uint32_t code_in_planes(const std::byte* planes, int code_bits, int k, int lane) {
  return with_planes(code_bits, [&](auto kind) {
    using Kind = decltype(kind);
    const int run_bytes = Kind::kCode * kBlockRows * 4;
    return code_of_run<Kind>(planes + k / kRunColumns * run_bytes, k % kRunColumns, lane);
  });
}

}  // namespace saker::kernels
