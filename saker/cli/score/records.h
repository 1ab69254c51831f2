// SPDX-License-Identifier: Apache-2.0
#pragma once

// `score -f`: reads JSON lines and writes one line for each, in batches. Continues an interrupted
// output file: records with a whole line are not scored again.

#include "saker/cli/records/record_files.h"
#include "saker/cli/score/html.h"
#include "saker/engine/engine.h"

#include <CLI/CLI.hpp>

namespace saker::cli {

struct RecordsInput : RecordFiles {
  int batch = 64;
  bool diff = false;          // Answers include the differences of views.
  ScorePage* page = nullptr;  // Also gets every text; null: none.
};

// Adds --output, --resume, --shard and --batch, which require `file`.
void add_records_input(CLI::App& command, RecordsInput& input, CLI::Option& file);

// Scores each record with these options and returns the exit code. Throws kInvalidArgument at the
// end if records failed, including those of a resumed run. Throws it at once for an output that
// belongs to another input.
int score_records(
    engine::Engine& engine,
    const RecordsInput& input,
    const engine::ScoreRequest& options,
    engine::ScoreInstruments& instruments
);

}  // namespace saker::cli
