// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/speculation_check.h"

#include "saker/base/error.h"
#include "saker/cache/speculation.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace saker::generate {

namespace {

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

}  // namespace

SpeculationCheck::SpeculationCheck(const models::Model& model, const PassSpan& span) {
  cache::Speculation isolated(*span.cache);
  const std::size_t first_wanted = span.tokens.size() - static_cast<std::size_t>(span.logit_rows);
  for (std::size_t i = 0; i < span.tokens.size(); ++i) {
    const PassSpan token{
        .cache = &isolated.view(),
        .tokens = {span.tokens[i]},
        .logit_rows = i >= first_wanted ? 1 : 0,
        .adapter = span.adapter,
        .int8 = span.int8,
    };
    RowLogits logits = run_rows(model, {&token, 1});
    if (i >= first_wanted) {
      plain_.push_back(std::move(logits));
    }
  }
}

void SpeculationCheck::compare(RowLogits& joint, int first_row) {
  for (int row = 0; row < rows(); ++row) {
    const std::span<const float> got = joint.row(first_row + row);
    const std::span<const float> plain = plain_[static_cast<std::size_t>(row)].row(0);
    const auto [at, expected] = std::ranges::mismatch(got, plain, same_bits);
    require(
        at == got.end(),
        ErrorCode::kInternal,
        "check_speculation: row {} of a pass with {} draft tokens differs from plain decoding: the "
        "logit of token {} is {}, expected {}",
        row,
        rows() - 1,
        at - got.begin(),
        at == got.end() ? 0.0F : *at,
        at == got.end() ? 0.0F : *expected
    );
  }
}

}  // namespace saker::generate
