// SPDX-License-Identifier: Apache-2.0
#pragma once

// Constraints on the whole text of an answer. The library llguidance reads them and tells which
// tokens may come next (docs/constraints.md). The answer ends when nothing may follow. Plain values.

#include <cstdint>
#include <string>

namespace saker::engine {

// The language of a constraint.
enum class ConstraintKind : std::uint8_t { kJsonSchema, kRegex, kGrammar };

// The texts that an answer may be. Reasoning before the content is free.
struct Constraint {
  ConstraintKind kind = ConstraintKind::kJsonSchema;
  std::string text;  // A JSON schema, a regular expression, or a grammar in llguidance's Lark.
};

}  // namespace saker::engine
