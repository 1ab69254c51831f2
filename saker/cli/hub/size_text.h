// SPDX-License-Identifier: Apache-2.0
#pragma once

// Bytes and times in readable form.

#include <cstdint>
#include <string>

namespace saker::cli {

// "312 B", "4.7 kB", "1.2 GB": powers of 1000, as the hub's pages show sizes.
std::string size_text(std::uintmax_t bytes);

// Seconds since 1970 as "2026-11-22T12:30:05Z".
std::string time_text(std::int64_t seconds);

}  // namespace saker::cli
