// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs many requests of a JSON lines file together. Answers are JSON objects, one per line, in
// input order.

#include "saker/base/json/json.h"
#include "saker/cli/records/record_files.h"
#include "saker/engine/engine.h"

#include <string>

namespace saker::cli {

struct ChatOptions {
  bool enabled = false;
  Json opening = Json::array();  // Messages before the prompt.
};

// Turns a text prompt into chat messages if the options say so.
void as_chat(engine::Request& request, const ChatOptions& chat);

struct RecordsRun : RecordFiles {
  engine::Request defaults;  // The command line's; records override them.
  ChatOptions chat;
  int batch = 8;
};

// A failed record is answered by {"id", "error"}, and the others go on. Then throws an error with
// the number of failures. `resume`: whole lines of the output stay; throws kInvalidArgument if they
// answer other records.
int generate_records(engine::Engine& engine, const RecordsRun& run);

}  // namespace saker::cli
