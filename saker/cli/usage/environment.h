// SPDX-License-Identifier: Apache-2.0
#pragma once

// The environment variables that have an effect, besides those that are defaults of options
// (SAKER_ and the option's name).

#include <span>
#include <string>
#include <string_view>

namespace saker::cli {

struct EnvironmentVariable {
  std::string_view name;
  std::string_view effect;
};

std::span<const EnvironmentVariable> environment_variables();

// A setting's value as it may be shown to others: "(hidden)" for keys, tokens and passwords by the
// setting's name, else printable, cut, and without the user of an address.
std::string shown_value(std::string_view name, std::string_view value);

}  // namespace saker::cli
