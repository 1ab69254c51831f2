// SPDX-License-Identifier: Apache-2.0
#pragma once

// Defaults that a served model has for all its requests.

#include "saker/base/json/json.h"
#include "saker/engine/language_model.h"

#include <cstdint>
#include <memory>

namespace saker::engine {

struct Preset {
  // Sampling options by their names (saker/engine/options): {"temperature": 0.6}. They replace those
  // of generation_config.json.
  Json sampling = Json::object();
  std::int64_t context = 0;  // Tokens of prompt and answer; 0: as many as the model takes.
  int kv_bits = 0;           // Bits of cached rows: 4, 8, 16 or 32; 0: as requests say.
};

// Throws kInvalidArgument for an unknown option or a wrong value.
void check_preset(const Preset& preset);

// The model with these defaults; itself if there are none. REQUIRES: check_preset accepts it.
std::unique_ptr<LanguageModel> with_preset(
    std::unique_ptr<LanguageModel> model, const Preset& preset
);

}  // namespace saker::engine
