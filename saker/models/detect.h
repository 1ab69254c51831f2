// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds a checkpoint's architecture if its `model_type` is unknown. Candidates: a family whose name
// it extends ("qwen3-instruct"); Qwen 3.5 if its linear-attention layers have that design;
// `generic` for a llama under its own name. A candidate counts only if it has every tensor of the
// checkpoint, so other designs are refused instead of answering nonsense. In a checkpoint for
// images too, only the text part (`language_model`) counts. Pure; any thread.

#include "saker/base/json/json.h"

#include <span>
#include <string>

namespace saker::models {

struct Detection {
  Json config;          // The given one, with a `model_type` that make_model knows.
  std::string warning;  // One line if the name was unknown; else empty.
};

// `tensors`: all names in the checkpoint. Throws kCorruptData for an invalid configuration. Throws
// kUnsupported, listing the names that can be run and why this one can't.
Detection detect_architecture(const Json& config, std::span<const std::string> tensors);

}  // namespace saker::models
