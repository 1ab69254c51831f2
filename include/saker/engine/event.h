// SPDX-License-Identifier: Apache-2.0
#pragma once

// The events of a request, in order: progress of its prompt, pieces of text, tokens if they were
// asked for, then one end. Plain values.

#include "saker/engine/result.h"
#include "saker/text/output_event.h"

#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace saker::engine {

// Tokens of the prompt that have run.
struct PromptProgress {
  int done = 0;
  int total = 0;

  bool operator==(const PromptProgress&) const = default;
};

// A token was chosen; the text that it makes final follows. Only with Output::token_events.
struct TokenEvent {
  std::int32_t id = 0;
  std::string bytes = {};  // Its part of the text, perhaps a part of a character.
  double logprob = 0.0;    // As in TokenLogprob, and so is `top`.
  std::vector<std::pair<std::int32_t, double>> top = {};
  bool drafted = false;  // A draft had it, and the model's own pass agreed.

  bool operator==(const TokenEvent&) const = default;
};

// The answer is whole.
struct End {
  std::shared_ptr<const GenerateResult> result = {};
};

// The request failed: a saker::Error, or std::bad_alloc without memory for one.
struct Failure {
  std::exception_ptr error = {};
};

struct Event {
  using What = std::variant<
      PromptProgress,
      text::ReasoningPiece,
      text::ContentPiece,
      text::CallOpened,
      text::CallArguments,
      text::CallClosed,
      TokenEvent,
      End,
      Failure>;

  int choice = 0;  // The answer's number, below Output::n.
  What what = {};

  // True for the last event of its choice.
  bool is_end() const {
    return std::holds_alternative<End>(what) || std::holds_alternative<Failure>(what);
  }
};

// The kind in one word, for bindings: "prompt", "reasoning", "content", "call", "arguments",
// "call_end", "token", "end" or "failure".
constexpr std::string_view event_name(const Event& event) {
  constexpr std::array<std::string_view, std::variant_size_v<Event::What>> kNames = {
      "prompt", "reasoning", "content", "call", "arguments", "call_end", "token", "end", "failure"
  };
  return kNames[event.what.index()];
}

}  // namespace saker::engine
