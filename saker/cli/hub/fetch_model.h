// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pulls as the commands do them, with bars, and with Ctrl-C that leaves what has come: the command
// `pull`, and --pull, which every command that takes a model has.

#include "saker/cli/command.h"
#include "saker/hub/pull.h"

#include <CLI/CLI.hpp>

namespace saker::cli {

// Pulls with bars on stderr. Throws as hub::pull does.
hub::PullReport fetch_model(const hub::ModelName& name, hub::PullOptions options);

void add_pull(CLI::App& app, Action& action);

// Adds --pull to the commands that take models, which must be there.
void add_pull_flags(CLI::App& app);

// With --pull: fetches the models that the command line names and that are neither folders nor in
// the cache.
void fetch_missing_models(const CLI::App& app);

}  // namespace saker::cli
