// SPDX-License-Identifier: Apache-2.0
#pragma once

// The options of a generation request. Each has one name, for flags (`--max-tokens 5`) and JSON
// lines ({"max_tokens": 5}).

#include "saker/base/json/json.h"
#include "saker/engine/request.h"

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace saker::cli {

struct RequestField {
  enum class Kind { kInteger, kNumber, kFlag, kText, kTexts, kObject, kIntegerOrAuto, kSwitch };

  static constexpr std::size_t kMaxAliases = 2;

  std::string_view name;  // As in JSON; the flag has '-' for '_'.
  Kind kind;
  std::string_view help;
  void (*set)(
      engine::GenerateRequest& request, const Json& value
  );  // REQUIRES: the value has the kind's type.
  std::array<std::string_view, kMaxAliases> aliases = {};  // Other accepted names, then empty ones.

  // The other accepted names.
  std::span<const std::string_view> other_names() const;
};

std::span<const RequestField> request_fields();

// The field with this name or other name; null if there is none.
const RequestField* find_field(std::string_view name);

// Sets every member of `record` that is a request option or a prompt ("prompt", "tokens",
// "messages", "tools"). "id" is skipped, null counts as absent, and whole numbers may be written as
// floats. Throws kInvalidArgument, naming the key, for unknown keys and wrong types, and if two
// names of an option have different values.
void apply_record(const Json& record, engine::GenerateRequest& request);

// Parses "1,2,3", the value of `flag`, as token ids; throws kInvalidArgument.
std::vector<std::int32_t> parse_token_list(std::string_view flag, std::string_view text);

// Throws kInvalidArgument, with the field's name in front, for options that no model takes.
void check_request(const engine::GenerateRequest& request);

}  // namespace saker::cli
