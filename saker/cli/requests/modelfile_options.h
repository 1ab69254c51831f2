// SPDX-License-Identifier: Apache-2.0
#pragma once

// The PARAMETER lines of a Modelfile as request options, by our names or ollama's.

#include "saker/base/json/json.h"
#include "saker/load/importers/modelfile.h"

#include <string>
#include <string_view>
#include <vector>

namespace saker::cli {

struct ModelfileOptions {
  Json options = Json::object();      // As in records.
  std::vector<std::string> warnings;  // About parameters without a counterpart.
};

// Saker's name of an option that may have ollama's name.
std::string option_name(std::string_view name);

// True if either name is an option that can be set by itself: no prompt and no adapter.
bool is_option_name(std::string_view name);

// One option as in records. Throws kInvalidArgument for invalid values and unknown names; `shown`
// is the message's name for it.
Json option_of(const std::string& name, const std::string& text, std::string_view shown);

// Throws kInvalidArgument, naming the parameter, for invalid values and unknown names.
ModelfileOptions options_of(const std::vector<load::Modelfile::Parameter>& parameters);

}  // namespace saker::cli
