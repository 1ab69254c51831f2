// SPDX-License-Identifier: Apache-2.0
#pragma once

// The options of a generation request under their one name, for flags (`--max-tokens 5`) and JSON
// lines ({"max_tokens": 5}).

#include "saker/base/json.h"
#include "saker/engine/request.h"

#include <span>
#include <string_view>

namespace saker::cli {

struct RequestField {
  enum class Kind { kInteger, kNumber, kFlag, kText, kTexts, kObject, kIntegerOrAuto, kSwitch };

  std::string_view name;  // As JSON spells it; the flag has '-' for '_'.
  Kind kind;
  std::string_view help;
  void (*set)(
      engine::GenerateRequest& request, const Json& value
  );                            // The value has the kind's type.
  std::string_view alias = {};  // Another name that is understood; empty: none.
};

std::span<const RequestField> request_fields();

// Sets every member of `record` that is a request option or a prompt ("prompt", "tokens",
// "messages", "tools"); throws kInvalidArgument naming a key that is unknown or has the wrong type,
// and when an option and its alias differ. "id" is skipped, null is not given, and whole numbers
// may be written as floats.
void apply_record(const Json& record, engine::GenerateRequest& request);

// "1,2,3", which `flag` was given, as token ids; throws kInvalidArgument.
std::vector<std::int32_t> parse_token_list(std::string_view flag, std::string_view text);

}  // namespace saker::cli
