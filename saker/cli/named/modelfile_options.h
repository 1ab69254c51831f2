// SPDX-License-Identifier: Apache-2.0
#pragma once

// The PARAMETER lines of a Modelfile as request options, by our names or ollama's.

#include "saker/base/json.h"
#include "saker/load/importers/modelfile.h"

#include <string>
#include <vector>

namespace saker::cli {

struct ModelfileOptions {
  Json options = Json::object();      // As in records.
  std::vector<std::string> warnings;  // About parameters without a counterpart.
};

// Throws kInvalidArgument, naming the parameter, for invalid values and unknown names.
ModelfileOptions options_of(const std::vector<load::Modelfile::Parameter>& parameters);

}  // namespace saker::cli
