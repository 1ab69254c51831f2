// SPDX-License-Identifier: Apache-2.0
#include "saker/models/pooling.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace saker::models {
namespace {

constexpr std::array<std::string_view, 3> kNames{"last", "mean", "cls"};  // In the enum's order.

}  // namespace

std::span<const std::string_view> pooling_names() {
  return kNames;
}

std::optional<Pooling> find_pooling(std::string_view name) {
  const auto* const found = std::ranges::find(kNames, name);
  return found == kNames.end() ? std::nullopt
                               : std::optional(static_cast<Pooling>(found - kNames.begin()));
}

std::string_view pooling_name(Pooling pooling) {
  return kNames.at(static_cast<std::size_t>(pooling));
}

}  // namespace saker::models
