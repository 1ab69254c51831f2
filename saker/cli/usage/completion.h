// SPDX-License-Identifier: Apache-2.0
#pragma once

// Completion of command lines in shells. The shells' scripts ask the program itself for candidates,
// so these are always current.

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace saker::cli {

struct Candidate {
  std::string text;
  std::string help;  // One line; may be empty.
};

<<<<<<< HEAD

// Completions of the last of `words`, which may be empty; `words` lack the program's name. No
// candidates: a file name, or anything. `models` are the names of local models.
std::vector<Candidate> candidates(
=======

struct Completions {
  std::vector<Candidate> words;
  bool files = false;  // Names of files and folders fit, too.
};

// What the last of `words`, which may be empty, can become; `words` are without the program's
// name. `models`: names of models that are here.
Completions completions(
>>>>>>> small
    const CLI::App& app, std::vector<std::string> words, const std::vector<std::string>& models
);

// For bash, zsh or fish; empty for another name.
std::string_view completion_script(std::string_view shell);

}  // namespace saker::cli
