// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which of the architectures a checkpoint is of, where its `model_type` is none of the table's:
// a family whose name it continues ("qwen3-instruct"), Qwen 3.5 where layers of linear attention
// are those of its design, or `generic` for a llama under a name of its own. All only where every
// tensor is one that the family's layers have, so that what is built otherwise is refused instead
// of answering nonsense. Of a checkpoint for images too, whose text part is a `language_model`,
// that part alone counts. Pure; any thread.

#include "saker/base/json.h"

#include <span>
#include <string>

namespace saker::models {

struct Detection {
  Json config;          // The one given, under a `model_type` that make_model knows.
  std::string warning;  // One line, where the name was not one of the table's; else empty.
};

// `tensors`: the names of all of the checkpoint. Throws kCorruptData for what is no configuration,
// and kUnsupported, listing the names that can be run and why this one can't.
Detection detect_architecture(const Json& config, std::span<const std::string> tensors);

}  // namespace saker::models
