// SPDX-License-Identifier: Apache-2.0
#include "saker/sample/token_mask.h"

#include "saker/base/error.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace saker::sample {

namespace {

constexpr std::size_t kWordBits = 32;
constexpr std::uint32_t kAll = ~std::uint32_t{0};

}  // namespace

void fill_mask(TokenMask& mask, std::size_t vocab_size, FilledMask& filled) {
  filled.bits.assign((vocab_size + kWordBits - 1) / kWordBits, 0);
  filled.may_end = mask.fill(filled.bits);
  if (const std::size_t rest = vocab_size % kWordBits; rest > 0) {
    filled.bits.back() &= (std::uint32_t{1} << rest) - 1;
  }
}

bool apply_mask(const FilledMask& mask, std::span<float> logits) {
  const std::vector<std::uint32_t>& bits = mask.bits;
  if (std::ranges::all_of(bits, [](std::uint32_t word) { return word == 0; })) {
    require(
        mask.may_end,
        ErrorCode::kInvalidArgument,
        "the constraint allows no token of the model here, and no end"
    );
    return false;
  }
  for (std::size_t word = 0; word < bits.size(); ++word) {
    if (bits[word] == kAll) {
      continue;
    }
    const std::size_t end = std::min((word + 1) * kWordBits, logits.size());
    for (std::size_t i = word * kWordBits; i < end; ++i) {
      if ((bits[word] >> (i % kWordBits) & 1U) == 0) {
        logits[i] = -std::numeric_limits<float>::infinity();
      }
    }
  }
  return true;
}

}  // namespace saker::sample
