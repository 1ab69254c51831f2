// SPDX-License-Identifier: Apache-2.0
#include "saker/load/export/family_pairs.h"

#include "saker/base/error.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace saker::load::gguf {

void FamilyPairs::add(std::string_view key, MetadataValue value) {
  pairs_.push_back({fmt::format("{}.{}", family_, key), std::move(value)});
}

void FamilyPairs::add_integer(std::string_view key, std::int64_t value) {
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  expect(
      value >= 0 && value <= kMost,
      key,
      fmt::format("{}", value),
      fmt::format("a number up to {}", kMost)
  );
  add(key, static_cast<std::uint32_t>(value));
}

void FamilyPairs::add_number(std::string_view key, double value) {
  constexpr double kMost = std::numeric_limits<float>::max();
  expect(
      std::abs(value) <= kMost,
      key,
      fmt::format("{}", value),
      fmt::format("a number up to {:.3g}", kMost)
  );
  add(key, static_cast<float>(value));
}

void FamilyPairs::expect(
    bool ok, std::string_view field, std::string_view got, std::string_view expected
) const {
  require(
      ok,
      ErrorCode::kUnsupported,
      "[config] {} is {}, a GGUF file of architecture {} means {}",
      field,
      got,
      family_,
      expected
  );
}

}  // namespace saker::load::gguf
