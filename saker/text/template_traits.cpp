// SPDX-License-Identifier: Apache-2.0
#include "saker/text/template_traits.h"

#include <fmt/format.h>

#include <cstddef>
#include <string_view>
#include <utility>

namespace saker::text {
namespace {

// After this much time with one template there are no more probes. Usual templates take
// milliseconds, so that results do not depend on the machine's load.
constexpr std::chrono::seconds kPatience{10};

constexpr std::string_view kShown = "shown by the template";
constexpr std::string_view kName = "looked_for";
constexpr std::string_view kKey = "sought";
constexpr std::string_view kId = "a1B2c3D4e";
constexpr std::string_view kLongId = "call_0123456789abcdefghijklmn";

Json message(std::string_view role, Json content) {
  return {{"role", role}, {"content", std::move(content)}};
}

Json question() {
  return message("user", "question");
}

Json parts(std::string_view text) {
  return Json::array({Json{{"type", "text"}, {"text", text}}});
}

Json call_tools() {
  const Json parameters = {
      {"type", "object"},
      {"properties", {{kKey, {{"type", "string"}, {"description", "text"}}}}},
      {"required", {kKey}},
  };
  return Json::array({Json{
      {"type", "function"},
      {"function", {{"name", "listed"}, {"description", "text"}, {"parameters", parameters}}},
  }});
}

// A call of `kName` and its result. An empty id or name is left out.
Json call(const CallForm& form, std::string_view id, std::string_view name) {
  const Json object = {{kKey, kShown}};
  const Json text = fmt::format(R"({{"{}": "{}"}})", kKey, kShown);
  Json called = {
      {"type", "function"},
      {"function", {{"name", kName}, {"arguments", form.arguments_are_text ? text : object}}},
  };
  Json result = message("tool", "result");
  if (!id.empty()) {
    called["id"] = id;
    result["tool_call_id"] = id;
  }
  if (!name.empty()) {
    result["name"] = name;
  }
  Json asked = message("assistant", form.content_is_null ? Json() : Json(""));
  asked["tool_calls"] = Json::array({std::move(called)});
  return Json::array({question(), std::move(asked), std::move(result)});
}

Json conversation(Role role, const Json& content, const CallForm& form) {
  switch (role) {
    case Role::kSystem:
      return Json::array({message("system", content), question()});
    case Role::kUser:
      return Json::array({message("user", content)});
    case Role::kAssistant:
      return Json::array({question(), message("assistant", content), question()});
    case Role::kTool: {
      Json messages = call(form, kId, kName);
      messages.back()["content"] = content;
      return messages;
    }
  }
  return Json::array();
}

bool holds(const std::optional<std::string>& text, std::string_view part) {
  return text && text->find(part) != std::string::npos;
}

// How a call is shown, from bad to good.
enum CallRank { kFails, kHidden, kOddly, kWell };

CallRank rank_call(const std::optional<std::string>& text) {
  if (!text) {
    return kFails;
  }
  if (!holds(text, kName) || !holds(text, kShown)) {
    return kHidden;
  }
  // As Python writes it, or as JSON inside a JSON text.
  const bool odd =
      holds(text, fmt::format("'{}'", kKey)) || holds(text, fmt::format("\\\"{}", kKey));
  return odd ? kOddly : kWell;
}

}  // namespace

TemplateTraits::TemplateTraits(Render render, std::string source)
    : render_(std::move(render)), source_(std::move(source)) {}

template <typename T, typename Look>
T TemplateTraits::once(std::optional<T>& found, Look&& look) const {
  const std::lock_guard lock(mutex_);
  if (!found) {
    found = std::forward<Look>(look)();
  }
  return *found;
}

std::optional<std::string> TemplateTraits::render(const Json& messages, const Json& tools) const {
  if (spent_ > kPatience) {
    return std::nullopt;
  }
  const auto begin = std::chrono::steady_clock::now();
  auto text = render_(messages, tools);
  spent_ += std::chrono::steady_clock::now() - begin;
  return text;
}

bool TemplateTraits::shows(Role role, const Json& content, const CallForm& form) const {
  const auto text =
      render(conversation(role, content, form), role == Role::kTool ? call_tools() : Json());
  // A list that was not taken apart is printed as Python or JSON writes it.
  return holds(text, kShown) && !holds(text, "'type': 'text'") && !holds(text, R"("type": "text")");
}

// A template that takes parts reads their texts.
bool TemplateTraits::mentions_texts() const {
  return mentions(".text") || mentions("'text'") || mentions("\"text\"");
}

bool TemplateTraits::takes_text(Role role) const {
  if (!mentions_texts()) {
    return true;
  }
  const CallForm form = role == Role::kTool ? call_form() : CallForm{};
  return once(takes_text_.at(static_cast<std::size_t>(role)), [&] {
    return shows(role, kShown, form) || !shows(role, parts(kShown), form);
  });
}

bool TemplateTraits::takes_parts(Role role) const {
  if (!mentions_texts()) {
    return false;
  }
  const CallForm form = role == Role::kTool ? call_form() : CallForm{};
  return once(takes_parts_.at(static_cast<std::size_t>(role)), [&] {
    return shows(role, parts(kShown), form);
  });
}

CallForm TemplateTraits::call_form() const {
  return once(call_form_, [&] { return find_call_form(); });
}

// Most templates take objects beside an empty text: that form comes first and wins ties.
CallForm TemplateTraits::find_call_form() const {
  CallForm best;
  int best_rank = -1;
  bool text_is_shown = false;
  for (const bool null : {false, true}) {
    for (const bool as_text : {false, true}) {
      const CallForm form{.arguments_are_text = as_text, .content_is_null = null};
      const int rank = rank_call(render(call(form, kId, kName), call_tools()));
      text_is_shown = text_is_shown || (as_text && rank > kFails);
      if (rank > best_rank) {
        best = form;
        best_rank = rank;
      }
    }
    if (best_rank == kWell) {
      break;
    }
  }
  best.takes_text = text_is_shown;
  return best;
}

CallIds TemplateTraits::call_ids() const {
  const CallForm form = call_form();
  return once(call_ids_, [&] {
    const auto takes = [&](std::string_view id) {
      return render(call(form, id, kName), call_tools()).has_value();
    };
    if (!takes(kId)) {
      return CallIds::kAsGiven;
    }
    if (!takes(kLongId)) {
      return CallIds::kNineCharacters;
    }
    return takes("") ? CallIds::kAsGiven : CallIds::kRequired;
  });
}

bool TemplateTraits::needs_tool_names() const {
  const CallForm form = call_form();
  return once(needs_tool_names_, [&] {
    return !render(call(form, kId, ""), call_tools()) &&
           render(call(form, kId, kName), call_tools());
  });
}

bool TemplateTraits::takes_system() const {
  return once(takes_system_, [&] {
    // If it also fails or shows nothing without a system message, the reason is another one.
    return shows(Role::kSystem, kShown, {}) || shows(Role::kSystem, parts(kShown), {}) ||
           !holds(render(Json::array({message("user", kShown)})), kShown);
  });
}

bool TemplateTraits::takes_developer() const {
  // Many templates print any role, even one that their model was not trained on.
  return mentions("developer") && once(takes_developer_, [&] {
           const auto shown = [&](const Json& content) {
             const auto text = render(Json::array({message("developer", content), question()}));
             return holds(text, kShown);
           };
           return shown(kShown) || shown(parts(kShown));
         });
}

bool TemplateTraits::takes_second_system(const std::string& role) const {
  std::optional<bool>* found = nullptr;
  {
    const std::lock_guard lock(mutex_);
    found = &takes_second_system_[role];  // Its address is stable.
  }
  return once(*found, [&] {
    const auto text =
        render(Json::array({message("system", "first of two"), message(role, kShown), question()}));
    return holds(text, "first of two") && holds(text, kShown);
  });
}

}  // namespace saker::text
