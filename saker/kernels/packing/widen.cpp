// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/packing/widen.h"

#include <array>
#include <cstring>

namespace saker::kernels {
namespace {

// Codes that `bits` words hold, for any `bits`.
constexpr int kRun = 32;

constexpr std::uint32_t repeated(std::uint32_t pattern, unsigned distance) {
  std::uint32_t mask = 0;
  for (unsigned shift = 0; shift < 32; shift += distance) {
    mask |= pattern << shift;
  }
  return mask;
}

// `word` holds runs of 2 * kHalf codes of kBits bits without gaps, each run at a multiple of 2 *
// kHalf fields of kField bits. Moves the upper half of a run to its fields, then recurses into both
// halves.
template <unsigned kBits, unsigned kField, unsigned kHalf>
std::uint32_t spread(std::uint32_t word) {
  constexpr unsigned kUsed = kHalf * kBits;
  constexpr unsigned kWanted = kHalf * kField;
  constexpr std::uint32_t kLow = repeated((1U << kUsed) - 1U, 2 * kWanted);
  word = (word & kLow) | (word & kLow << kUsed) << (kWanted - kUsed);
  if constexpr (kHalf > 1) {
    return spread<kBits, kField, kHalf / 2>(word);
  }
  return word;
}

template <unsigned kBits>
void widen_run(const std::byte* from, std::uint32_t* words) {
  constexpr unsigned kCodes = kBits < 4 ? 8 : 4;
  constexpr unsigned kUnit = kBits * kCodes;
  std::array<std::uint32_t, kBits + 1> packed = {};
  std::memcpy(packed.data(), from, kBits * sizeof(std::uint32_t));
  for (unsigned i = 0; i < kRun / kCodes; ++i) {
    const unsigned bit = i * kUnit;
    const std::uint64_t both = packed[bit / 32] | static_cast<std::uint64_t>(packed[bit / 32 + 1])
                                                      << 32;
    const auto unit = static_cast<std::uint32_t>(both >> (bit % 32)) & ((1U << kUnit) - 1U);
    words[i] = spread<kBits, 32 / kCodes, kCodes / 2>(unit);
  }
}

template <unsigned kBits>
void widen_runs(const std::byte* from, int columns, std::uint32_t* words) {
  for (int k = 0; k < columns; k += kRun) {
    widen_run<kBits>(from, words);
    from += kBits * sizeof(std::uint32_t);
    words += kBits < 4 ? kRun / 8 : kRun / 4;
  }
}

}  // namespace

void widen_codes(const std::byte* from, int bits, int columns, std::uint32_t* words) {
  switch (bits) {
    case 2:
      return widen_runs<2>(from, columns, words);
    case 3:
      return widen_runs<3>(from, columns, words);
    case 5:
      return widen_runs<5>(from, columns, words);
    default:
      return widen_runs<6>(from, columns, words);
  }
}

}  // namespace saker::kernels
