// SPDX-License-Identifier: Apache-2.0
#pragma once

// Standard input, output and files as the commands use them: whole writes or an error, bounded
// reads.

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace saker::cli {

// A prompt, or one line of a JSON lines file, at most.
inline constexpr std::size_t kMaxTextBytes = std::size_t{64} << 20;

// Writes to stdout and flushes; throws kInternal when stdout takes no more (closed pipe, full
// disk).
void print(std::string_view text);

// The whole file, byte for byte; "-" is standard input. Throws kNotFound, kInvalidArgument when too
// large.
std::string read_text(const std::filesystem::path& path);

// What follows in standard input, up to its end.
std::string read_stdin();

}  // namespace saker::cli
