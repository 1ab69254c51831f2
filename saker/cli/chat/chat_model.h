// SPDX-License-Identifier: Apache-2.0
#pragma once

// A loaded model as the chat of `run` uses it: its engine, and what its requests begin with.

#include "saker/base/json.h"
#include "saker/cli/streaming.h"
#include "saker/engine/engine.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace saker::cli {

struct ChatModel {
  std::unique_ptr<engine::Engine> engine;
  engine::GenerateRequest defaults;  // Options of all requests.
  Json opening = Json::array();      // The messages before the first question.
  bool has_seed = false;             // Somebody asked for this seed, else it was drawn.
};

// Loads another model by its name, with the options of the command line.
using LoadChatModel = std::function<ChatModel(const std::string& name)>;

// What the model is: a line or two for the beginning of a chat.
std::string banner(const ChatModel& model);

// All that is known of it, a line each.
std::string model_facts(const ChatModel& model);

// "temp 0.6, top_p 0.95", or "greedy".
std::string describe_sampling(const sample::SamplingOptions& options);

}  // namespace saker::cli
