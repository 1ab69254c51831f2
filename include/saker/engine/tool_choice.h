// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which of the declared tools an answer may call (docs/tools.md). Plain values.

#include <cstdint>
#include <string>

namespace saker::engine {

enum class ToolUse : std::uint8_t {
  kAuto,      // The model decides. Arguments of strict tools fit their schemas.
  kNone,      // Nothing counts as a call.
  kRequired,  // At least one call, of any tool.
  kNamed,     // At least one call, of one tool.
};

struct ToolChoice {
  ToolUse use = ToolUse::kAuto;
  std::string name = {};    // For kNamed.
  bool is_parallel = true;  // Several calls; otherwise the answer ends after one.

  bool operator==(const ToolChoice&) const = default;
};

}  // namespace saker::engine
