// SPDX-License-Identifier: Apache-2.0
#pragma once

// Adapts the tool calls of a conversation and their results to a chat template.

#include "saker/base/json/json.h"
#include "saker/text/template_traits.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::text {

// Takes the messages of a conversation in order.
class CallHistory {
 public:
  // REQUIRES: `traits` outlives *this.
  explicit CallHistory(const TemplateTraits& traits) : traits_(traits) {}

  // An assistant's calls in the form that the template takes. Anything but a list of objects stays.
  Json fit_calls(const Json& calls);

  // Gives a tool's result the id and name that the template needs.
  void fit_result(Json& result);

 private:
  struct Call {
    std::string id;
    std::string name;
  };

  void fit_id(Json& call);
  std::string short_id(const std::string& id);
  Call take_open(const std::string& id, const std::string& name);

  const TemplateTraits& traits_;
  std::vector<Call> open_;  // Calls of the last assistant message that have no result yet.
  std::map<std::string, std::string, std::less<>> short_ids_;  // By the original id.
  std::size_t made_ = 0;                                       // Number of ids that we made.
};

// A message's `function_call` as its only tool call.
Json calls_of_function(const Json& function_call);

}  // namespace saker::text
