// SPDX-License-Identifier: Apache-2.0
#pragma once

// One request run to its end with its text shown as it comes.

#include "saker/engine/engine.h"

#include <cstdint>
#include <functional>
#include <string_view>

namespace saker::cli {

struct StreamHooks {
  // All may be empty, and are called on the waiting thread.
  std::function<void(std::string_view piece)> on_text = {};
  // The same text of a chat's answer in two, see engine::EventHandler.
  std::function<void(std::string_view piece)> on_reasoning = {};
  std::function<void(std::string_view piece)> on_content = {};
  std::function<void(std::uint64_t id)> on_started = {};  // The request's id, for cancelling.
  // Ten times a second while no text comes: rows of the prompt that were run, of how many. Without
  // it a long prompt shows a progress bar.
  std::function<void(int done, int total)> on_wait = {};
};

// Waits for the answer. Throws what the request or a hook throws.
engine::GenerateResult stream_request(
    engine::Engine& engine, engine::GenerateRequest request, const StreamHooks& hooks
);

// Warns on standard error of an answer that ended before the model did, and of what would help.
void warn_of_cut(const engine::GenerateResult& result, const engine::Engine& engine);

// Whether it ended since the model's context was full.
bool fills_context(const engine::GenerateResult& result, const engine::Engine& engine);

// "prompt 12 tokens, 340.1 tokens/s; ..." for people.
std::string describe(const engine::GenerateStats& stats);

}  // namespace saker::cli
