// SPDX-License-Identifier: Apache-2.0
#pragma once

// Completion of command lines in shells. The shells' scripts ask the program itself for candidates,
// so these are always current.

#include <CLI/CLI.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::cli {

struct Candidate {
  std::string text;
  std::string help;  // One line; may be empty.
};

struct Completions {
  std::vector<Candidate> words;
  bool files = false;  // Names of files and folders fit, too.
};

// Gives the names of local models. To find them takes longer than all else, so that it is called only where they fit.
using ModelNames = std::function<std::vector<std::string>()>;

// Completions of the last of `words`, which may be empty; `words` lack the program's name.
Completions completions(
    const CLI::App& app, std::vector<std::string> words, const ModelNames& models
);

// For bash, zsh or fish; empty for another name.
std::string_view completion_script(std::string_view shell);

}  // namespace saker::cli
