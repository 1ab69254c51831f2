// SPDX-License-Identifier: Apache-2.0
#pragma once

// A check before long measurements: views that give non-finite numbers make all later results
// worthless.

#include "saker/engine/engine.h"

#include <span>
#include <string>

namespace saker::engine {

// The outcome of the check.
struct Preflight {
  bool ok = true;
  std::string reason = {};  // One line that names the view; empty if ok.
};

// Runs the prompt "hello" (token 0 without a tokenizer) in each view and checks its 8 best next
// tokens. Errors of a view are reasons too. Any thread but the engine's.
Preflight preflight_finite_check(Engine& engine, std::span<const View> views);

}  // namespace saker::engine
