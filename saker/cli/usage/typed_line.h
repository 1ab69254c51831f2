// SPDX-License-Identifier: Apache-2.0
#pragma once

// The command line as it was typed, read before CLI11 does: which command and options it names, and
// the same in the program's own names. A model may be named anywhere (`-m MODEL`), and `help` and
// `version` may be words.

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace saker::cli {

struct TypedLine {
  const CLI::App* command = nullptr;        // The one that was chosen; the program where none is.
  std::vector<std::string> path = {};       // Its name, in words.
  std::vector<std::string> arguments = {};  // What follows, as CLI11 is to read it.
  std::vector<const CLI::Option*> options = {};  // Those that were given by a name.
  std::vector<std::string> texts = {};           // Arguments without a name, in their order.
  std::string unknown_option = {};               // The first that is none; empty: all are known.
  std::string unknown_command = {};              // Empty: none.

  bool has(const CLI::Option* option) const;

  // All words, for CLI11.
  std::vector<std::string> words() const;
};

// `args`: without the program's name. Never fails: CLI11 judges.
TypedLine read_line(const CLI::App& app, std::vector<std::string> args);

}  // namespace saker::cli
