// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/chat/conversation.h"

#include "saker/base/error.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace saker::cli {
namespace {

bool has_role(const Json& message, std::string_view role) {
  return message.at("role") == role;
}

bool is_of_system(const Json& message) {
  return has_role(message, "system") || has_role(message, "developer");
}

void check_message(const Json& message, std::string_view where, std::size_t number) {
  const auto role = message.is_object() ? message.find("role") : message.end();
  require(
      role != message.end() && role->is_string(),
      ErrorCode::kInvalidArgument,
      "{}: message {}: got {}, expected an object with role and content",
      where,
      number,
      describe_json(message)
  );
}

}  // namespace

std::string message_text(const Json& message) {
  const auto content = message.find("content");
  if (content == message.end()) {
    return {};
  }
  if (content->is_string()) {
    return content->get<std::string>();
  }
  std::string text;
  for (const Json& part : content->is_array() ? *content : Json::array()) {
    const auto found = part.is_object() ? part.find("text") : part.end();
    if (found != part.end() && found->is_string()) {
      text += found->get<std::string>();
    }
  }
  return text;
}

Conversation Conversation::parse(const Json& json, std::string_view where) {
  const bool has_member = json.is_object() && json.contains("messages");
  const Json& messages = has_member ? json.at("messages") : json;
  require(
      messages.is_array(),
      ErrorCode::kInvalidArgument,
      "{}: got {}, expected a list of messages",
      where,
      describe_json(messages)
  );
  Conversation result;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    check_message(messages[i], where, i + 1);
    const bool opens = result.turns_.empty() && is_of_system(messages[i]);
    (opens ? result.opening_ : result.turns_).push_back(messages[i]);
  }
  return result;
}

Json Conversation::messages() const {
  Json all = opening_;
  for (const Json& message : turns_) {
    all.push_back(message);
  }
  return all;
}

Json Conversation::asking(std::string_view question) const {
  Json all = messages();
  all.push_back({{"role", "user"}, {"content", question}});
  return all;
}

void Conversation::add_turn(std::string_view question, const text::AnswerParts& answer) {
  turns_.push_back({{"role", "user"}, {"content", question}});
  add_answer(answer);
}

void Conversation::add_answer(const text::AnswerParts& answer) {
  Json said = {{"role", "assistant"}, {"content", answer.content}};
  if (!answer.reasoning.empty()) {
    said["reasoning_content"] = answer.reasoning;
  }
  for (const text::ToolCall& call : answer.tool_calls) {
    const Json function = {{"name", call.name}, {"arguments", call.arguments}};
    said["tool_calls"].push_back({{"id", call.id}, {"type", "function"}, {"function", function}});
  }
  turns_.push_back(std::move(said));
}

void Conversation::add_result(const text::ToolCall& call, std::string_view result) {
  turns_.push_back(
      {{"role", "tool"}, {"tool_call_id", call.id}, {"name", call.name}, {"content", result}}
  );
}

int Conversation::turns() const {
  return static_cast<int>(std::ranges::count_if(turns_, [](const Json& message) {
    return has_role(message, "user");
  }));
}

std::optional<std::string> Conversation::undo() {
  for (std::size_t i = turns_.size(); i-- > 0;) {
    if (has_role(turns_[i], "user")) {
      std::string question = message_text(turns_[i]);
      turns_.erase(turns_.begin() + static_cast<std::ptrdiff_t>(i), turns_.end());
      return question;
    }
  }
  return std::nullopt;
}

bool Conversation::drop_oldest() {
  if (turns_.empty()) {
    return false;
  }
  const auto next = std::find_if(std::next(turns_.begin()), turns_.end(), [](const Json& message) {
    return has_role(message, "user");
  });
  turns_.erase(turns_.begin(), next);
  return true;
}

std::string Conversation::system() const {
  const bool has = !opening_.empty() && is_of_system(opening_.front());
  return has ? message_text(opening_.front()) : std::string();
}

void Conversation::set_system(std::string_view text) {
  if (!opening_.empty() && is_of_system(opening_.front())) {
    opening_.erase(opening_.begin());
  }
  if (!text.empty()) {
    const Json message = {{"role", "system"}, {"content", text}};
    opening_.insert(opening_.begin(), message);
  }
}

}  // namespace saker::cli
