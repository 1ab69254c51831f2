// SPDX-License-Identifier: Apache-2.0
#pragma once

// A loaded model for the chat of `run`: its engine, and the defaults of its requests.

#include "saker/base/json/json.h"
#include "saker/cli/requests/streaming.h"
#include "saker/engine/engine.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace saker::cli {

struct ChatModel {
  std::unique_ptr<engine::Engine> engine;
  engine::Request defaults;      // Options of all requests.
  Json opening = Json::array();  // Messages before the first question.
  bool has_seed = false;         // The user chose this seed; otherwise it was drawn.
};

// Loads another model by its name, with the command line's options.
using LoadChatModel = std::function<ChatModel(const std::string& name)>;

// A line or two about the model for the beginning of a chat.
std::string banner(const ChatModel& model);

// All known facts about it, one per line.
std::string model_facts(const ChatModel& model);

// "temp 0.6, top_p 0.95", or "greedy".
std::string describe_sampling(const sample::SamplingOptions& options);

}  // namespace saker::cli
