// SPDX-License-Identifier: Apache-2.0
#pragma once

// generation_config.json: how a model's authors want it to answer. No model needs it, so whatever
// is wrong with it is a warning.

#include "saker/base/json.h"
#include "saker/text/model_texts.h"

#include <string>
#include <vector>

namespace saker::text {

struct GenerationConfig {
  Json values = Json::object();  // Without an `eos_token_id` that holds anything but ids.
  std::vector<std::string> warnings;
};

// Nothing is given where the file is missing, can't be read or is no object.
GenerationConfig read_generation_config(const ModelTexts& texts);

}  // namespace saker::text
