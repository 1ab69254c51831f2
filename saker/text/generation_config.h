// SPDX-License-Identifier: Apache-2.0
#pragma once

// generation_config.json: the sampling defaults of a model's authors. No model needs the file, so
// all errors in it are warnings.

#include "saker/base/json/json.h"
#include "saker/text/model_texts.h"

#include <string>
#include <vector>

namespace saker::text {

struct GenerationConfig {
  Json values = Json::object();  // Has an `eos_token_id` only if that holds ids.
  std::vector<std::string> warnings;
};

// Empty values if the file is missing, can't be read or is no object.
GenerationConfig read_generation_config(const ModelTexts& texts);

}  // namespace saker::text
