// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pulls for commands, with progress bars; Ctrl-C keeps the partial download. The command `pull`
// uses it, and so does --pull of all commands that take a model. Without --pull, such a command
// asks at a terminal.

#include "saker/cli/options/command.h"
#include "saker/hub/pull.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>

namespace saker::cli {

enum class Consent : std::uint8_t {
  kGiven,
  kAsk,         // At the terminal, once the size is known.
  kAskOfModel,  // As kAsk, with whether the model runs here and fits, if that is known soon.
};

// Pulls with bars on stderr. Throws as hub::pull does, and kCancelled if the answer is no.
hub::PullReport fetch_model(
    const hub::ModelName& name, hub::PullOptions options, Consent consent = Consent::kGiven
);

void add_pull(CLI::App& app, Action& action);

// Adds --pull to the commands that take models. REQUIRES: these are added already.
void add_pull_flags(CLI::App& app);

// Fetches a model that is neither a folder nor in the cache, if `pulls` or the user at a terminal agrees. Otherwise throws
// kNotFound, saying how to get it.
void fetch_missing_model(const std::string& model, bool pulls);

// Fetches the command line's models that are neither folders nor in the cache, if --pull is given
// or the user at a terminal agrees. Otherwise throws kNotFound, saying how to get them. Not those of `launch`, which may
// find a server that has them.
void fetch_missing_models(const CLI::App& app);

}  // namespace saker::cli
