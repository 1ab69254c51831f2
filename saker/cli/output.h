// SPDX-License-Identifier: Apache-2.0
#pragma once

// Standard input, output and files as the commands use them: whole writes or an error, bounded
// reads. What reaches a terminal gives it no orders (saker/base/characters/printable.h); files and
// pipes get the bytes as they are.

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace saker::cli {

// A prompt, or one line of a JSON lines file, at most.
inline constexpr std::size_t kMaxTextBytes = std::size_t{64} << 20;

// Writes to stdout and flushes; throws kInternal when stdout takes no more (full disk). A reader
// that went away ends the program, see `end_with_reader`.
void print(std::string_view text);

// The same for what a model or a template wrote: a piece of whole characters.
void print_text(std::string_view text);

// The same for text with orders of our own to the terminal; what others wrote in it is printable
// already.
void print_styled(std::string_view text);

// Writes lines to stderr, shortened and printable wherever that leads. When stderr takes no more
// there is nobody to tell, so nothing happens.
void print_error(std::string_view text);

// From now on writing to a pipe without a reader ends the program quietly by SIGPIPE, as shells
// expect, whatever the parent process has set.
void end_with_reader();

// The whole file, byte for byte; "-" is standard input. Throws kNotFound, kInvalidArgument when too
// large.
std::string read_text(const std::filesystem::path& path);

// What follows in standard input, up to its end.
std::string read_stdin();

}  // namespace saker::cli
