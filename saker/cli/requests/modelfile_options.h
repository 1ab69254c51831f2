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

<<<<<<< HEAD

// Throws kInvalidArgument, naming the parameter, for invalid values and unknown names.
=======

// The name here of what may have ollama's name.
std::string option_name(std::string_view name);

// Whether it is an option by either name, and is set by itself: no prompt and no adapter.
bool is_option_name(std::string_view name);

// One option as records have it. Throws kInvalidArgument for a value that it can't have and for a
// name that nobody knows; `shown` is what the message calls it.
Json option_of(const std::string& name, const std::string& text, std::string_view shown);

// Throws kInvalidArgument, naming the parameter, for values that it can't have and for names that
// nobody knows.
>>>>>>> small
ModelfileOptions options_of(const std::vector<load::Modelfile::Parameter>& parameters);

}  // namespace saker::cli
