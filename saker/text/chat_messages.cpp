// SPDX-License-Identifier: Apache-2.0
#include "saker/text/chat_messages.h"

#include "saker/base/error.h"
#include "saker/text/call_history.h"
#include "saker/text/message_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace saker::text {
namespace {

constexpr std::string_view kBetweenSystems = "\n\n";

// The member, or null if it is absent or null.
const Json* given(const Json& message, const char* key) {
  const auto found = message.find(key);
  return found == message.end() || found->is_null() ? nullptr : &*found;
}

std::string_view role_of(const Json& message) {
  const Json* role = given(message, "role");
  return role != nullptr && role->is_string()
             ? std::string_view(role->get_ref<const std::string&>())
             : std::string_view();
}

bool is_system(std::string_view role) {
  return role == "system" || role == "developer";
}

Role role_named(std::string_view name) {
  return is_system(name)       ? Role::kSystem
         : name == "assistant" ? Role::kAssistant
         : name == "tool"      ? Role::kTool
                               : Role::kUser;
}

class Fitter {
 public:
  explicit Fitter(const TemplateTraits& traits) : traits_(traits), history_(traits) {}

  Json run(const Json& messages) {
    fitted_ = Json::array();
    for (const Json& message : messages) {
      append(message);
    }
    join_first_systems();
    move_system();
    return std::move(fitted_);
  }

 private:
  void append(const Json& message) {
    const std::string role = fit_role(role_of(message));
    Json calls = calls_of(message);
    const bool has_calls = calls.is_array() && !calls.empty();
    if (has_calls) {
      calls = history_.fit_calls(calls);
    }
    Json::object_t fields = fields_of(message, role, has_calls);
    Json shown(std::move(fields));
    if (has_calls && traits_.call_form().content_is_null) {
      split_content(shown);
    }
    if (has_calls) {
      shown["tool_calls"] = std::move(calls);
    }
    if (role == "tool") {
      history_.fit_result(shown);
    }
    fitted_.push_back(std::move(shown));
  }

  std::string fit_role(std::string_view role) const {
    if (role == "developer" && !traits_.takes_developer()) {
      return "system";
    }
    if (role == "function" && !traits_.mentions("function_call")) {
      return "tool";
    }
    return std::string(role);
  }

  Json calls_of(const Json& message) const {
    if (const Json* calls = given(message, "tool_calls")) {
      return *calls;
    }
    const Json* function = given(message, "function_call");
    const bool is_call =
        function != nullptr && function->is_object() && !traits_.mentions("function_call");
    return is_call ? calls_of_function(*function) : Json();
  }

  // Members are appended: assignment would search all keys first.
  Json::object_t fields_of(const Json& message, const std::string& role, bool has_calls) const {
    Json::object_t fields;
    const Json* content = given(message, "content");
    MessageContent fitted{"", {}};
    if (content != nullptr) {
      fitted = fit_content(*content, role_named(role), traits_);
    }
    const Json reasoning = reasoning_of(message, fitted.thoughts);
    if (!reasoning.is_null()) {
      const Json* thinking = given(message, "thinking");
      fields.emplace_back("thinking", thinking == nullptr ? reasoning : *thinking);
    }
    const bool replaces_function_call = has_calls && given(message, "tool_calls") == nullptr;
    for (const auto& [key, value] : message.items()) {
      if (key == "content") {
        fields.emplace_back(key, fitted.content);
      } else if (key == "role" && value.is_string()) {
        fields.emplace_back(key, role);
      } else if (key == "tool_calls" && (has_calls || value.is_array())) {
        if (has_calls) {
          fields.emplace_back(key, nullptr);  // Reserves the place.
        }
      } else if (!value.is_null() && key != "thinking" &&
                 !(key == "function_call" && replaces_function_call)) {
        fields.emplace_back(key, value);
      }
    }
    if (has_calls && !message.contains("content")) {
      fields.emplace_back("content", "");
    }
    if (!reasoning.is_null() && given(message, "reasoning_content") == nullptr) {
      fields.emplace_back("reasoning_content", reasoning);
    }
    return fields;
  }

  static Json reasoning_of(const Json& message, const std::string& thoughts) {
    for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
      if (const Json* found = given(message, name)) {
        return *found;
      }
    }
    return thoughts.empty() ? Json() : Json(thoughts);
  }

  // If content would hide the calls beside it, it becomes a message of its own.
  void split_content(Json& message) {
    Json& content = message["content"];
    if (content.is_string() && !content.get_ref<const std::string&>().empty()) {
      Json alone = message;
      alone.erase("tool_calls");
      fitted_.push_back(std::move(alone));
    }
    content = nullptr;
  }

  std::size_t first_systems() const {
    const auto is_one = [](const Json& message) {
      const Json* content = given(message, "content");
      return is_system(role_of(message)) && content != nullptr && content->is_string();
    };
    const auto end = std::ranges::find_if_not(fitted_, is_one);
    return static_cast<std::size_t>(end - fitted_.begin());
  }

  void join_first_systems() {
    const std::size_t count = first_systems();
    if (count < 2 || traits_.takes_second_system(std::string(role_of(fitted_[1])))) {
      return;
    }
    auto& text = fitted_.front()["content"].get_ref<std::string&>();
    for (std::size_t i = 1; i < count; ++i) {
      text += kBetweenSystems;
      text += fitted_[i].at("content").get_ref<const std::string&>();
    }
    const auto second = std::next(fitted_.begin());
    fitted_.erase(second, std::next(second, static_cast<std::ptrdiff_t>(count - 1)));
  }

  // Moves it into the first question if the template has no other place for it.
  void move_system() {
    if (first_systems() != 1 || fitted_.size() < 2 || role_of(fitted_[1]) != "user" ||
        !fitted_[1].contains("content") || !fitted_[1].at("content").is_string() ||
        traits_.takes_system()) {
      return;
    }
    auto& question = fitted_[1]["content"].get_ref<std::string&>();
    question.insert(0, kBetweenSystems);
    question.insert(0, fitted_.front().at("content").get_ref<const std::string&>());
    fitted_.erase(fitted_.begin());
  }

  const TemplateTraits& traits_;
  CallHistory history_;
  Json fitted_;
};

}  // namespace

Json fit_messages(const Json& messages, const TemplateTraits& traits) {
  require(
      messages.is_array() && !messages.empty() && std::ranges::all_of(messages, &Json::is_object),
      ErrorCode::kInvalidArgument,
      "messages: got {}, expected a list of at least one object",
      describe_json(messages)
  );
  return Fitter(traits).run(messages);
}

void require_text_only(const Json& messages) {
  if (!messages.is_array()) {
    return;
  }
  for (const Json& message : messages) {
    const Json* content = message.is_object() ? given(message, "content") : nullptr;
    if (content == nullptr || !content->is_array()) {
      continue;
    }
    for (const Json& part : *content) {
      const Json* type = part.is_object() ? given(part, "type") : nullptr;
      if (type != nullptr && !text_of_part(part) && !thoughts_of_part(part)) {
        throw Error(
            ErrorCode::kUnsupported,
            fmt::format(
                "messages: got a part of type {}, expected text: images and sounds can't be read",
                describe_json(*type)
            )
        );
      }
    }
  }
}

}  // namespace saker::text
