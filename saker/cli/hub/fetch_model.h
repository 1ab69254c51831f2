// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pulls as the commands do them, with bars, and with Ctrl-C that leaves what has come: the command
// `pull`, --pull, which every command that takes a model has, and without it a question on a
// terminal.

#include "saker/cli/command.h"
#include "saker/hub/pull.h"

#include <CLI/CLI.hpp>

#include <cstdint>

namespace saker::cli {

enum class Consent : std::uint8_t {
  kGiven,
  kAsk,         // On the terminal, once the size is known.
  kAskOfModel,  // The same, saying whether it runs here and fits, where that is known soon.
};

// Pulls with bars on stderr. Throws as hub::pull does, and kCancelled where the answer is no.
hub::PullReport fetch_model(
    const hub::ModelName& name, hub::PullOptions options, Consent consent = Consent::kGiven
);

void add_pull(CLI::App& app, Action& action);

// Adds --pull to the commands that take models, which must be there.
void add_pull_flags(CLI::App& app);

// The models that the command line names and that are neither folders nor in the cache: fetches
// them with --pull, or where somebody at a terminal agrees. Throws kNotFound otherwise, saying how
// to get them.
void fetch_missing_models(const CLI::App& app);

}  // namespace saker::cli
