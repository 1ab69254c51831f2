// SPDX-License-Identifier: Apache-2.0
#pragma once

// A chat: the messages so far and the engine session that caches their rows.

#include "saker/base/json.h"
#include "saker/cli/streaming.h"
#include "saker/engine/engine.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace saker::cli {

class Conversation {
 public:
  // `defaults` holds the options of every turn, `opening` the messages before the first one.
  // Without a chat template each question is continued as plain text.
  Conversation(engine::Engine& engine, engine::GenerateRequest defaults, Json opening);
  ~Conversation();
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  // Asks and streams the answer. A turn that fails leaves the conversation as it was.
  engine::GenerateResult ask(std::string_view question, const StreamHooks& hooks);
  // Forgets everything but the opening.
  void reset();

  int turns() const { return turns_; }

  // Of the last answer.
  const std::optional<engine::GenerateStats>& stats() const { return stats_; }

 private:
  engine::Engine& engine_;
  engine::GenerateRequest defaults_;
  Json opening_;
  Json messages_;
  std::uint64_t session_;
  int turns_ = 0;
  std::optional<engine::GenerateStats> stats_;
};

}  // namespace saker::cli
