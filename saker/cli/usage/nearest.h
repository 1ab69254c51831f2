// SPDX-License-Identifier: Apache-2.0
#pragma once

// What was meant by a mistyped name.

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace saker::cli {

// The candidate that `typed` is most likely meant to be: few letters added, left out, replaced or
// swapped, or its beginning; none where nothing is near. Ties go to the first.
std::optional<std::string> nearest(std::string_view typed, std::span<const std::string> candidates);

}  // namespace saker::cli
