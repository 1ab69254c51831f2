// SPDX-License-Identifier: Apache-2.0
#pragma once

// A model's answer, piece by piece: reasoning, content, calls of tools. Plain values.

#include <string>
#include <variant>

namespace saker::text {

// Text that the model thinks before it answers.
struct ReasoningPiece {
  std::string text = {};

  bool operator==(const ReasoningPiece&) const = default;
};

// Text of the answer itself.
struct ContentPiece {
  std::string text = {};

  bool operator==(const ContentPiece&) const = default;
};

// A call of a declared tool begins. `index` counts the calls of an answer from 0.
struct CallOpened {
  int index = 0;
  std::string id = {};  // Unique in its conversation.
  std::string name = {};

  bool operator==(const CallOpened&) const = default;
};

// More of a call's arguments; the joined pieces of a closed call are one JSON object.
struct CallArguments {
  int index = 0;
  std::string text = {};

  bool operator==(const CallArguments&) const = default;
};

// A call is whole.
struct CallClosed {
  int index = 0;

  bool operator==(const CallClosed&) const = default;
};

using OutputEvent =
    std::variant<ReasoningPiece, ContentPiece, CallOpened, CallArguments, CallClosed>;

}  // namespace saker::text
