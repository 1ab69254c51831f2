// SPDX-License-Identifier: Apache-2.0
#pragma once

// The typed command line, parsed before CLI11 does: its command and options, translated to the
// program's own names. A model may be named anywhere (`-m MODEL`), and `help` and `version` may be
// words.

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace saker::cli {

struct TypedLine {
  const CLI::App* command = nullptr;             // The chosen command, else the program.
  std::vector<std::string> path = {};            // Its name, in words.
  std::vector<std::string> arguments = {};       // Everything after it, in CLI11's form.
  std::vector<const CLI::Option*> options = {};  // Options given by name.
  std::vector<std::string> texts = {};           // Arguments without a name, in order.
  std::string unknown_option = {};               // First unknown option; empty: none.
  std::string unknown_command = {};              // Empty: none.

  bool has(const CLI::Option* option) const;

  // All words, for CLI11.
  std::vector<std::string> words() const;
};

// `args` lack the program's name. Never fails: CLI11 reports errors.
TypedLine read_line(const CLI::App& app, std::vector<std::string> args);

}  // namespace saker::cli
