// SPDX-License-Identifier: Apache-2.0
#pragma once

// One request run to its end with its text shown as it comes.

#include "saker/engine/engine.h"

#include <cstdint>
#include <functional>
#include <string_view>

namespace saker::cli {

struct StreamHooks {
  std::function<void(std::string_view)> on_text;  // Called on the waiting thread; may be empty.
  std::function<void(std::uint64_t id)>
      on_started;  // The request's id, for cancelling; may be empty.
};

// Waits for the answer; long prompts show a progress bar. Throws what the request or `on_text`
// throws.
engine::GenerateResult stream_request(
    engine::Engine& engine, engine::GenerateRequest request, const StreamHooks& hooks
);

// "prompt 12 tokens, 340.1 tokens/s; ..." for people.
std::string describe(const engine::GenerateStats& stats);

}  // namespace saker::cli
