// SPDX-License-Identifier: Apache-2.0
#pragma once

// Standard input, output and files for the commands: complete writes or an error, bounded reads.
// Text for a terminal can't control it (saker/base/characters/printable.h); files and pipes get
// unchanged bytes.

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace saker::cli {

// Maximum size of a prompt, or of a line of a JSON lines file.
inline constexpr std::size_t kMaxTextBytes = std::size_t{64} << 20;

// Writes to stdout and flushes. Throws kInternal if stdout takes no more (full disk). If the reader
// went away the program ends, see `end_with_reader`.
void print(std::string_view text);

// As print, for text of a model or template: a piece of whole characters.
void print_text(std::string_view text);

// As print, for text with our own terminal controls. REQUIRES: foreign parts of it are printable
// already.
void print_styled(std::string_view text);

// Writes lines to stderr, shortened and always printable. Errors of stderr are ignored, since
// nobody could be told.
void print_error(std::string_view text);

// From now on writing to a pipe without a reader ends the program quietly by SIGPIPE, as shells
// expect, whatever the parent process has set.
void end_with_reader();

// The whole file, byte for byte; "-" is standard input. Throws kNotFound, and kInvalidArgument if
// it is too large.
std::string read_text(const std::filesystem::path& path);

// The rest of standard input.
std::string read_stdin();

}  // namespace saker::cli
