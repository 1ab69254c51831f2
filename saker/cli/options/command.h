// SPDX-License-Identifier: Apache-2.0
#pragma once

// The commands. Each `add_*` adds one to the program. If the command line chooses it, `action`
// becomes the function that runs it and returns the exit code. Failures are thrown as saker::Error.

#include <CLI/CLI.hpp>

#include <functional>

namespace saker::cli {

using Action = std::function<int()>;

void add_run(CLI::App& app, Action& action);
void add_generate(CLI::App& app, Action& action);
void add_score(CLI::App& app, Action& action);
void add_embed(CLI::App& app, Action& action);
void add_rerank(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_tokenize(CLI::App& app, Action& action);
void add_detokenize(CLI::App& app, Action& action);
void add_template(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_cache(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);
void add_convert(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_create(CLI::App& app, Action& action);
void add_imatrix(CLI::App& app, Action& action);
void add_perplexity(CLI::App& app, Action& action);
void add_list(CLI::App& app, Action& action);
void add_merge(CLI::App& app, Action& action);
void add_rm(CLI::App& app, Action& action);
void add_verify(CLI::App& app, Action& action);

}  // namespace saker::cli
