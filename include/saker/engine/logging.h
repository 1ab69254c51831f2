// SPDX-License-Identifier: Apache-2.0
#pragma once

// Log messages go through spdlog's default logger to standard error, from any thread. A message
// whose level is off costs one comparison; expensive arguments are built behind
// `spdlog::should_log`. Messages are printable (saker/base/characters/printable.h); warnings and
// errors are one line each.
//
// Levels: warn and error are for people who run a model. info reports loading, debug each request,
// trace each pass.

#include <array>
#include <string_view>

namespace saker {

// From the most messages to none.
inline constexpr std::array<std::string_view, 6> kLogLevels = {
    "trace", "debug", "info", "warn", "error", "off"
};

// Makes the default logger write to standard error, in colours if that is a terminal and NO_COLOR
// is not set. The level is the environment variable SAKER_LOG, or "warn"; an unknown level there
// gives a warning.
void log_to_stderr();

// Throws kInvalidArgument unless `name` is one of kLogLevels.
void set_log_level(std::string_view name);

}  // namespace saker
