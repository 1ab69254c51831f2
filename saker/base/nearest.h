// SPDX-License-Identifier: Apache-2.0
#pragma once

// Guesses the name that was meant by a mistyped one.

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace saker {

// The candidate closest to `typed`: a few letters added, omitted, replaced or swapped, or only its
// beginning typed. Empty if none is close. The first one wins ties.
std::optional<std::string> nearest(std::string_view typed, std::span<const std::string> candidates);

}  // namespace saker
