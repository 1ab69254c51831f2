// SPDX-License-Identifier: Apache-2.0
#pragma once

// A look at a model before much is measured with it: views that give numbers which are not finite
// make every later figure worthless.

#include "saker/engine/engine.h"

#include <span>
#include <string>

namespace saker::engine {

struct Preflight {
  bool ok = true;
  std::string reason = {};  // One line that names the view; empty when all is well.
};

// Runs the prompt "hello" (token 0 without a tokenizer) in each view and checks its 8 best next
// tokens. Errors of a view are reasons too. Any thread but the engine's.
Preflight preflight_finite_check(Engine& engine, std::span<const View> views);

}  // namespace saker::engine
