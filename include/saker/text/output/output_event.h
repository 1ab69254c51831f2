// SPDX-License-Identifier: Apache-2.0
#pragma once

// What an answer of a chat model is made of, in order: reasoning, content and tool calls. Pieces of
// the same kind that follow each other belong together. Plain values.

#include "saker/text/answer_parts.h"

#include <string>
#include <variant>
#include <vector>

namespace saker::text {

// A piece of the reasoning before or between the content.
struct ReasoningPiece {
  std::string text = {};

  bool operator==(const ReasoningPiece&) const = default;
};

// A piece of the content: all that is neither reasoning nor a call.
struct ContentPiece {
  std::string text = {};

  bool operator==(const ContentPiece&) const = default;
};

// A call of a declared tool begins. Calls count from 0.
struct CallOpened {
  int index = 0;
  std::string id = {};  // The model's own, else one of `OutputPolicy::id_seed` and the index.
  std::string name = {};

  bool operator==(const CallOpened&) const = default;
};

// A piece of the call's arguments. Joined, they are one JSON object if the call is closed.
struct CallArguments {
  int index = 0;
  std::string text = {};

  bool operator==(const CallArguments&) const = default;
};

// The call is whole. A call that is never closed was cut off, or its text is content as well.
struct CallClosed {
  int index = 0;

  bool operator==(const CallClosed&) const = default;
};

using OutputEvent =
    std::variant<ReasoningPiece, ContentPiece, CallOpened, CallArguments, CallClosed>;

// Collects events into parts.
class AnswerCollector {
 public:
  // Adds the event of an answer. Events come in order.
  void add(const OutputEvent& event);

  // The parts so far.
  const AnswerParts& parts() const { return parts_; }

 private:
  AnswerParts parts_;
  ToolCall open_;
};

}  // namespace saker::text
