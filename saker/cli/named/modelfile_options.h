// SPDX-License-Identifier: Apache-2.0
#pragma once

// The PARAMETER lines of a Modelfile as request options: by their names here or by ollama's.

#include "saker/base/json.h"
#include "saker/load/importers/modelfile.h"

#include <string>
#include <vector>

namespace saker::cli {

struct ModelfileOptions {
  Json options = Json::object();      // As in records.
  std::vector<std::string> warnings;  // Of what has no counterpart.
};

// Throws kInvalidArgument, naming the parameter, for values that it can't have and for names that
// nobody knows.
ModelfileOptions options_of(const std::vector<load::Modelfile::Parameter>& parameters);

}  // namespace saker::cli
