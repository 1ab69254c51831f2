// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/options/setters.h"

#include "saker/base/error.h"
#include "saker/engine/speculate.h"
#include "saker/text/gbnf.h"

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

namespace saker::engine {

int as_int(const Json& value, std::string_view name) {
  bool fits = false;
  if (value.is_number_unsigned()) {
    fits = value.get<std::uint64_t>() <= std::numeric_limits<int>::max();
  } else {
    const auto number = value.get<std::int64_t>();
    fits = number >= std::numeric_limits<int>::min() && number <= std::numeric_limits<int>::max();
  }
  require(fits, ErrorCode::kInvalidArgument, "{}: {} is out of range", name, value.dump());
  return static_cast<int>(value.get<std::int64_t>());
}

std::vector<std::string> as_texts(const Json& value) {
  return value.is_string() ? std::vector<std::string>{value.get<std::string>()}
                           : value.get<std::vector<std::string>>();
}

namespace {

void set_constraint(
    const RequestOption& option, ConstraintKind kind, std::string text, Request& request
) {
  require(
      !request.output.constraint || request.output.constraint->kind == kind,
      ErrorCode::kInvalidArgument,
      "{}: the answer has another constraint already, expected one of json_schema, regex, "
      "grammar, choices and json_object",
      option.name
  );
  request.output.constraint = {.kind = kind, .text = std::move(text)};
}

}  // namespace

void set_json_schema(const RequestOption& option, const Json& value, Request& request) {
  set_constraint(option, ConstraintKind::kJsonSchema, value.dump(), request);
}

void set_regex(const RequestOption& option, const Json& value, Request& request) {
  set_constraint(option, ConstraintKind::kRegex, value.get<std::string>(), request);
}

void set_grammar(const RequestOption& option, const Json& value, Request& request) {
  const auto& text = value.get_ref<const std::string&>();
  set_constraint(
      option,
      ConstraintKind::kGrammar,
      text::is_gbnf(text) ? text::lark_of_gbnf(text, option.name) : text,
      request
  );
}

void set_choices(const RequestOption& option, const Json& value, Request& request) {
  std::string grammar;
  for (const std::string& choice : as_texts(value)) {
    grammar += grammar.empty() ? "start: " : " | ";
    grammar += Json(choice).dump();
  }
  require(
      !grammar.empty(), ErrorCode::kInvalidArgument, "{}: got none, expected texts", option.name
  );
  set_constraint(option, ConstraintKind::kGrammar, grammar + "\n", request);
}

void set_json_object(const RequestOption& option, const Json& value, Request& request) {
  if (value.get<bool>()) {
    set_constraint(option, ConstraintKind::kJsonSchema, R"({"type":"object"})", request);
  }
}

void set_user(const RequestOption& /*option*/, const Json& value, Request& request) {
  request.placement.user = value.get<std::string>();
}

void set_timeout(const RequestOption& option, const Json& value, Request& request) {
  request.placement.timeout = value.get<double>();
  require(
      request.placement.timeout >= 0.0,
      ErrorCode::kInvalidArgument,
      "{}: got {}, expected 0 or more seconds",
      option.name,
      value.dump()
  );
}

void set_max_tokens(const RequestOption& option, const Json& value, Request& request) {
  request.output.max_tokens = as_int(value, option.name);
  require(
      request.output.max_tokens >= 1 || request.output.max_tokens == kNoTokenLimit,
      ErrorCode::kInvalidArgument,
      "{}: got {}, expected 1 or more, or -1 for no limit",
      option.name,
      request.output.max_tokens
  );
}

void set_ignore_eos(const RequestOption& /*option*/, const Json& value, Request& request) {
  request.output.ignore_eos = value.get<bool>();
}

void set_token_events(const RequestOption& /*option*/, const Json& value, Request& request) {
  request.output.token_events = value.get<bool>();
}

// 0: none of the alternatives are asked for.
void set_logprobs(const RequestOption& option, const Json& value, Request& request) {
  request.output.logprobs = as_int(value, option.name);
  require(
      request.output.logprobs >= 0,
      ErrorCode::kInvalidArgument,
      "{}: got {}, expected 0 or more",
      option.name,
      request.output.logprobs
  );
}

void set_seed(const RequestOption& option, const Json& value, Request& request) {
  require(
      value.is_number_unsigned() || value.get<std::int64_t>() >= 0,
      ErrorCode::kInvalidArgument,
      "{}: got {}, expected an integer of at least 0",
      option.name,
      value.dump()
  );
  request.sampling.seed = value.get<std::uint64_t>();
}

void set_logit_bias(const RequestOption& option, const Json& value, Request& request) {
  request.sampling.logit_bias.clear();
  for (const auto& [key, bias] : value.items()) {
    std::int32_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    require(
        error == std::errc() && end == key.data() + key.size() && bias.is_number(),
        ErrorCode::kInvalidArgument,
        "{}: got {}: {}, expected token ids with numbers, as in {{\"42\": -1.5}}",
        option.name,
        key,
        bias.dump()
    );
    request.sampling.logit_bias[id] = bias.get<double>();
  }
}

void set_speculate(const RequestOption& /*option*/, const Json& value, Request& request) {
  request.drafting.method = parse_speculate(value.get<std::string>());
}

void set_check_speculation(const RequestOption& /*option*/, const Json& value, Request& request) {
  request.drafting.check = value.get<bool>();
}

void set_acceptance(const RequestOption& /*option*/, const Json& value, Request& request) {
  request.drafting.acceptance = parse_acceptance(value.get<std::string>());
}

void set_draft_depth(const RequestOption& option, const Json& value, Request& request) {
  request.drafting.depth = value.is_string() ? kAutoDraftDepth : as_int(value, option.name);
  require(
      value.is_string() || (request.drafting.depth >= option.range.low &&
                            request.drafting.depth <= option.range.high),
      ErrorCode::kInvalidArgument,
      "{}: got {}, expected auto or {} to {}",
      option.name,
      value.dump(),
      option.range.low,
      option.range.high
  );
}

void set_adapter_scale(const RequestOption& /*option*/, const Json& value, Request& request) {
  request.placement.adapter_scale = value.get<double>();
}

// "auto" is the default.
void set_think(const RequestOption& /*option*/, const Json& value, Request& request) {
  request.prompt.think = value.is_boolean() ? std::optional(value.get<bool>()) : std::nullopt;
}

void set_template_kwargs(const RequestOption& /*option*/, const Json& value, Request& request) {
  request.prompt.template_kwargs = value;
}

void set_tools(const RequestOption& /*option*/, const Json& value, Request& request) {
  request.prompt.tools = value;
}

void set_tool_choice(const RequestOption& /*option*/, const Json& value, Request& request) {
  ToolChoice& choice = request.output.tool_choice;
  choice.name.clear();
  if (value == "auto") {
    choice.use = ToolUse::kAuto;
  } else if (value == "none") {
    choice.use = ToolUse::kNone;
  } else if (value == "required") {
    choice.use = ToolUse::kRequired;
  } else {
    choice.use = ToolUse::kNamed;
    choice.name = value.get<std::string>();
  }
}

// "auto" is the default.
void set_parallel_tool_calls(const RequestOption& /*option*/, const Json& value, Request& request) {
  request.output.tool_choice.is_parallel = !value.is_boolean() || value.get<bool>();
}

}  // namespace saker::engine
