// SPDX-License-Identifier: Apache-2.0
#pragma once

// The types of a tool's arguments by its JSON schema, for formats that write values without types.

#include "saker/base/json/json.h"
#include "saker/text/output/tool.h"

#include <string>
#include <string_view>

namespace saker::text {

// Types that a schema allows.
struct ArgumentTypes {
  bool text = false;
  bool number = false;
  bool boolean = false;
  bool null = false;
  bool list = false;
  bool object = false;

  bool is_text_alone() const { return text && !(number || boolean || null || list || object); }

  ArgumentTypes operator|(const ArgumentTypes& other) const;
};

// Any type if the schema does not tell.
ArgumentTypes types_of_argument(const Tool& tool, std::string_view key);
ArgumentTypes any_type();

// The JSON of an argument that is written without a type: what the types allow, else a text.
std::string typed_argument(std::string_view text, const ArgumentTypes& types);

// A JSON string.
std::string json_string(std::string_view text);

}  // namespace saker::text
