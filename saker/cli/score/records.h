// SPDX-License-Identifier: Apache-2.0
#pragma once

// `score -f`: JSON lines in, one line out for each, in batches. An output file that was interrupted
// is continued: what has its whole line is not scored again.

#include "saker/cli/score/html.h"
#include "saker/engine/engine.h"

#include <CLI/CLI.hpp>

#include <filesystem>

namespace saker::cli {

struct RecordsInput {
  std::filesystem::path file;
  std::filesystem::path output;  // Empty: standard output.
  bool resume = false;
  int batch = 64;
  bool diff = false;          // Answers also say what the views differ by.
  ScorePage* page = nullptr;  // Takes every text, too; null: none.
};

// Adds --output, --resume and --batch, which need `file`.
void add_records_input(CLI::App& command, RecordsInput& input, CLI::Option& file);

// Scores each record with these options; the exit code. Throws kInvalidArgument at the end when
// records failed, those of a run that is resumed included, and at once for an output that belongs
// to other input.
int score_records(
    engine::Engine& engine,
    const RecordsInput& input,
    const engine::ScoreRequest& options,
    engine::ScoreInstruments& instruments
);

// A record's request. Throws kInvalidArgument for unknown members and wrong types.
engine::ScoreRequest make_score_request(const Json& record, const engine::ScoreRequest& options);

}  // namespace saker::cli
