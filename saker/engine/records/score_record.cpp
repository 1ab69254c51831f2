// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/records/score_record.h"

#include "saker/base/error.h"
#include "saker/engine/options/apply_options.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace saker::engine {
namespace {

constexpr std::string_view kRecordKeys[] = {
    "text", "prompt", "completion", "tokens", "prompt_tokens"
};

std::string text_member(const Json& value, const std::string& key) {
  require(
      value.is_string(),
      ErrorCode::kInvalidArgument,
      "{}: got {}, expected a text",
      key,
      value.type_name()
  );
  return value.get<std::string>();
}

std::vector<std::int32_t> token_member(const Json& value) {
  Request holder;
  apply_record({{"tokens", value}}, holder);
  return *holder.prompt.tokens;
}

}  // namespace

ScoreRequest make_score_request(const Json& record, const ScoreRequest& options) {
  require(
      record.is_object(),
      ErrorCode::kInvalidArgument,
      "expected a JSON object, got {}",
      record.type_name()
  );
  ScoreRequest request = options;
  for (const auto& [key, value] : record.items()) {
    if (value.is_null() && std::ranges::find(kRecordKeys, key) != std::end(kRecordKeys)) {
      continue;
    }
    if (key == "text") {
      request.text = text_member(value, key);
    } else if (key == "prompt") {
      request.prompt = text_member(value, key);
    } else if (key == "completion") {
      request.completion = text_member(value, key);
    } else if (key == "tokens") {
      request.tokens = token_member(value);
    } else if (key == "prompt_tokens") {
      request.prompt_tokens = token_member(value);
    } else {
      require(
          key == "id",
          ErrorCode::kInvalidArgument,
          "unknown option {:?}, expected id and text, tokens, or prompt and completion",
          key
      );
    }
  }
  return request;
}

}  // namespace saker::engine
