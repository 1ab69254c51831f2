// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs one request to its end and shows its text as it comes.

#include "saker/engine/engine.h"

#include <cstdint>
#include <functional>
#include <string_view>

namespace saker::cli {

struct StreamHooks {
  // All may be empty. They are called on the waiting thread.
  std::function<void(std::string_view piece)> on_reasoning = {};
  std::function<void(std::string_view piece)> on_content = {};  // Of answers to prompts: all text.
  std::function<void(std::uint64_t id)> on_started = {};        // For Engine::cancel.
  // Called ten times a second while no text comes, with the prompt's tokens that have run, and all
  // of them. Without this hook a long prompt shows a progress bar.
  std::function<void(int done, int total)> on_wait = {};
};

// Waits for the answer. Throws errors of the request or of a hook.
engine::GenerateResult stream_request(
    engine::Engine& engine, engine::Request request, const StreamHooks& hooks
);

// Warns on standard error if an answer was cut off, and says what would help.
void warn_of_cut(const engine::GenerateResult& result, const engine::Engine& engine);

// True if the answer ended because the model's context was full.
bool fills_context(const engine::GenerateResult& result, const engine::Engine& engine);

// "prompt 12 tokens, 340.1 tokens/s; ..." for people.
std::string describe(const engine::GenerateStats& stats);

}  // namespace saker::cli
