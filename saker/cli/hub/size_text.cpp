// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/hub/size_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>

namespace saker::cli {

std::string size_text(std::uintmax_t bytes) {
  constexpr std::array kUnits{"kB", "MB", "GB", "TB", "PB"};
  // Larger values round up to the next unit, so that "1000.0 kB" is never shown.
  constexpr double kNext = 999.95;
  if (bytes < 1000) {
    return fmt::format("{} B", bytes);
  }
  double value = static_cast<double>(bytes) / 1000;
  std::size_t unit = 0;
  while (value >= kNext && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string time_text(std::int64_t seconds) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

}  // namespace saker::cli
