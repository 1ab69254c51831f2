// SPDX-License-Identifier: Apache-2.0
#pragma once

// Many requests from a JSON lines file, run together and answered one JSON object a line in input
// order.

#include "saker/base/json.h"
#include "saker/engine/engine.h"

#include <filesystem>
#include <string>

namespace saker::cli {

struct ChatOptions {
  bool enabled = false;
  Json opening = Json::array();  // The messages before the prompt.
};

// Turns a text prompt into chat messages when the options say so.
void as_chat(engine::GenerateRequest& request, const ChatOptions& chat);

struct RecordsRun {
  std::filesystem::path file;
  engine::GenerateRequest defaults;  // What the command line gave; records override it.
  ChatOptions chat;
  int batch = 8;
};

// A record that fails is answered by {"id", "error"} and the others go on; then throws, counting
// the failures.
int generate_records(engine::Engine& engine, const RecordsRun& run);

}  // namespace saker::cli
