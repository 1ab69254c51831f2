// SPDX-License-Identifier: Apache-2.0
#pragma once

// A chat model's answer in its parts. Plain values.

#include <string>
#include <vector>

namespace saker::text {

// A whole tool call.
struct ToolCall {
  std::string id = {};
  std::string name = {};
  std::string arguments = {};  // The text of a JSON object.

  bool operator==(const ToolCall&) const = default;
};

// An answer's reasoning, its content, and its whole calls.
struct AnswerParts {
  std::string reasoning = {};
  std::string content = {};
  std::vector<ToolCall> tool_calls = {};

  bool operator==(const AnswerParts&) const = default;
};

}  // namespace saker::text
