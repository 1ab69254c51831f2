// SPDX-License-Identifier: Apache-2.0
#pragma once

// One answer's events put together, for answers that are sent whole. One thread.

#include "saker/base/json/json.h"
#include "saker/engine/event.h"

#include <map>
#include <memory>
#include <string>

namespace saker::server {

struct CollectedCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON text.
};

struct CollectedAnswer {
  std::string reasoning;
  std::string content;
  std::map<int, CollectedCall> calls;  // By their index.
  std::shared_ptr<const engine::GenerateResult> result;

  void add(const engine::Event& event);
};

// False for an answer that a limit or a cancellation cut off.
constexpr bool is_whole(const engine::GenerateResult& result) {
  return result.finish_reason != engine::FinishReason::kLength &&
         result.finish_reason != engine::FinishReason::kCancelled &&
         result.finish_reason != engine::FinishReason::kDeadline;
}

// A call's arguments as an object; {} for an empty text, and a text that is no JSON as a member.
Json arguments_object(const std::string& text);

}  // namespace saker::server
