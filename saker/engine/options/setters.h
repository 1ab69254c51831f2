// SPDX-License-Identifier: Apache-2.0
#pragma once

// Functions that set one option of a request from its JSON value, for the table. Each requires a
// value of the option's kind, and throws kInvalidArgument with the option's name in front.

#include "saker/base/json/json.h"
#include "saker/engine/options/request_option.h"
#include "saker/engine/request.h"
#include "saker/sample/options.h"

#include <string>
#include <string_view>
#include <vector>

namespace saker::engine {

// Throws "NAME: VALUE is out of range" unless the value fits. REQUIRES: an integer.
int as_int(const Json& value, std::string_view name);

// REQUIRES: a text or a list of texts.
std::vector<std::string> as_texts(const Json& value);

template <double sample::SamplingOptions::* member>
void set_number(const RequestOption& /*option*/, const Json& value, Request& request) {
  request.sampling.*member = value.get<double>();
}

template <int sample::SamplingOptions::* member>
void set_integer(const RequestOption& option, const Json& value, Request& request) {
  request.sampling.*member = as_int(value, option.name);
}

// `part` is a member of Request, `member` one of that part.
template <auto part, auto member>
void set_member(const RequestOption& option, const Json& value, Request& request) {
  request.*part.*member = as_int(value, option.name);
}

template <auto part, auto member>
void set_texts(const RequestOption& /*option*/, const Json& value, Request& request) {
  request.*part.*member = as_texts(value);
}

template <auto part, auto member>
void set_path(const RequestOption& /*option*/, const Json& value, Request& request) {
  request.*part.*member = value.get<std::string>();
}

// Throws for a second constraint.
void set_json_schema(const RequestOption& option, const Json& value, Request& request);
void set_regex(const RequestOption& option, const Json& value, Request& request);
void set_grammar(const RequestOption& option, const Json& value, Request& request);
// Texts, one of which is the answer.
void set_choices(const RequestOption& option, const Json& value, Request& request);
void set_json_object(const RequestOption& option, const Json& value, Request& request);
void set_user(const RequestOption& option, const Json& value, Request& request);
void set_timeout(const RequestOption& option, const Json& value, Request& request);
void set_max_tokens(const RequestOption& option, const Json& value, Request& request);
void set_ignore_eos(const RequestOption& option, const Json& value, Request& request);
void set_token_events(const RequestOption& option, const Json& value, Request& request);
void set_logprobs(const RequestOption& option, const Json& value, Request& request);
void set_seed(const RequestOption& option, const Json& value, Request& request);
void set_logit_bias(const RequestOption& option, const Json& value, Request& request);
void set_speculate(const RequestOption& option, const Json& value, Request& request);
void set_check_speculation(const RequestOption& option, const Json& value, Request& request);
void set_acceptance(const RequestOption& option, const Json& value, Request& request);
void set_draft_depth(const RequestOption& option, const Json& value, Request& request);
void set_adapter_scale(const RequestOption& option, const Json& value, Request& request);
void set_think(const RequestOption& option, const Json& value, Request& request);
void set_template_kwargs(const RequestOption& option, const Json& value, Request& request);
void set_tools(const RequestOption& option, const Json& value, Request& request);
void set_tool_choice(const RequestOption& option, const Json& value, Request& request);
void set_parallel_tool_calls(const RequestOption& option, const Json& value, Request& request);

}  // namespace saker::engine
