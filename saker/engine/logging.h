// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where messages go: through spdlog's default logger to standard error, from any thread. What a
// message costs while its level is off is one comparison; arguments that cost more are made behind
// `spdlog::should_log`. Messages are printable (saker/base/characters/printable.h); warnings and
// errors are one line each.
//
// warn and error are for people who run a model; info says what was loaded, debug what happens to
// each request, trace what happens in each pass.

#include <array>
#include <string_view>

namespace saker {

// From most messages to none.
inline constexpr std::array<std::string_view, 6> kLogLevels = {
    "trace", "debug", "info", "warn", "error", "off"
};

// From now on the default logger writes to standard error, in colours on a terminal without
// NO_COLOR, at the level of the environment's SAKER_LOG, or "warn". Warns of a level there that is
// none.
void log_to_stderr();

// Throws kInvalidArgument unless `name` is one of kLogLevels.
void set_log_level(std::string_view name);

}  // namespace saker
