// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/options/apply_options.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/engine/options/option_values.h"
#include "saker/engine/options/setters.h"
#include "saker/sample/options.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace saker::engine {
namespace {

// Flags and Modelfiles may hold any bytes.
void require_texts(const Json& value, std::string_view key) {
  if (value.is_string()) {
    require_utf8(value.get_ref<const std::string&>(), key);
  } else if (value.is_array()) {
    for (const Json& item : value) {
      if (item.is_string()) {
        require_utf8(item.get_ref<const std::string&>(), key);
      }
    }
  }
}

// Throws if the record has another value under a name of the option that precedes `key`.
void check_names_agree(
    const Json& record, const RequestOption& option, std::string_view key, const Json& value
) {
  for (const std::string_view name : {option.name, option.aliases[0], option.aliases[1]}) {
    if (name == key) {
      return;
    }
    const auto other = record.find(std::string(name));
    if (other != record.end() && !other->is_null()) {
      require(
          in_kind(*other, option.kind) == in_kind(value, option.kind),
          ErrorCode::kInvalidArgument,
          "{} and {} are the same option: got {} and {}",
          name,
          key,
          other->dump(),
          value.dump()
      );
    }
  }
}

std::vector<std::int32_t> json_tokens(const Json& value) {
  require(value.is_array(), ErrorCode::kInvalidArgument, "tokens: expected a list of token ids");
  std::vector<std::int32_t> tokens;
  tokens.reserve(value.size());
  for (const auto& item : value) {
    const Json id = as_whole(item);
    require(
        id.is_number_integer(),
        ErrorCode::kInvalidArgument,
        "tokens: got {}, expected token ids",
        item.dump()
    );
    tokens.push_back(as_int(id, "a token id"));
  }
  return tokens;
}

constexpr std::string_view kPromptKeys[] = {"prompt", "tokens", "messages"};

// Prompts have types of their own; true if `key` is one. Null counts as absent.
bool apply_prompt(std::string_view key, const Json& value, Request& request) {
  if (std::ranges::find(kPromptKeys, key) == std::end(kPromptKeys)) {
    return false;
  }
  if (value.is_null()) {
    return true;
  }
  if (key == "prompt") {
    require(
        value.is_string(),
        ErrorCode::kInvalidArgument,
        "prompt: got {}, expected a text",
        value.type_name()
    );
    request.prompt.text = value.get<std::string>();
  } else if (key == "tokens") {
    request.prompt.tokens = json_tokens(value);
  } else {
    request.prompt.messages = value;
  }
  return true;
}

}  // namespace

void apply_option(
    const RequestOption& option, std::string_view key, const Json& value, Request& request
) {
  require_texts(value, key);
  const Json typed = in_kind(value, option.kind);
  require(
      has_kind(typed, option.kind),
      ErrorCode::kInvalidArgument,
      "{}: got {}, expected {}",
      key,
      describe_value(value, option.kind),
      kind_name(option.kind)
  );
  option.set(option, typed, request);
}

void apply_record(const Json& record, Request& request) {
  require(
      record.is_object(),
      ErrorCode::kInvalidArgument,
      "expected a JSON object, got {}",
      record.type_name()
  );
  for (const auto& [key, value] : record.items()) {
    if (key == "id" || apply_prompt(key, value, request)) {
      continue;
    }
    const RequestOption* option = find_option(key);
    require(
        option != nullptr && option->doors.record,
        ErrorCode::kInvalidArgument,
        "unknown option {:?}",
        key
    );
    if (!value.is_null()) {
      apply_option(*option, key, value, request);
      check_names_agree(record, *option, key, value);
    }
  }
}

void check_request(const Request& request) {
  constexpr int kAnyVocabulary = std::numeric_limits<int>::max();
  constexpr std::array kBits{4, 8, 16, 32};
  sample::check_options(request.sampling, kAnyVocabulary);
  require(
      std::ranges::find(kBits, request.placement.kv_bits) != kBits.end(),
      ErrorCode::kInvalidArgument,
      "kv_bits: got {}, expected 32, 16, 8 or 4",
      request.placement.kv_bits
  );
  require(
      request.placement.max_kv_size >= 0,
      ErrorCode::kInvalidArgument,
      "max_kv_size: got {}, expected 0 or more",
      request.placement.max_kv_size
  );
}

}  // namespace saker::engine
