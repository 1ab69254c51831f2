// SPDX-License-Identifier: Apache-2.0
#pragma once

// What one chat template takes, found by looking: short conversations that differ in one thing are
// rendered, and what shows of them decides. Each look happens at most once, when it is first asked
// for. A template that is slow gets no further looks and counts as taking the usual form. All
// members may be called from any thread.

#include "saker/base/json.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace saker::text {

enum class Role : std::uint8_t { kSystem, kUser, kAssistant, kTool };

// How a template wants an assistant's tool calls.
struct CallForm {
  bool arguments_are_text = false;  // Else an object.
  bool content_is_null = false;     // Else text beside the calls, maybe an empty one.
  bool takes_text = true;           // The template does not fail where arguments are text.
};

enum class CallIds : std::uint8_t {
  kAsGiven,         // Any or none.
  kRequired,        // Without them the template fails.
  kNineCharacters,  // Nine letters or digits, as in the templates of Mistral.
};

class TemplateTraits {
 public:
  // The prompt, or nothing where the template fails. `tools`: null or a list.
  using Render = std::function<std::optional<std::string>(const Json& messages, const Json& tools)>;

  // `source` is the template's text.
  TemplateTraits(Render render, std::string source);

  // Whether content may be a text; else it has to be a list of parts.
  bool takes_text(Role role) const;
  // Whether content may be a list of parts.
  bool takes_parts(Role role) const;
  CallForm call_form() const;
  CallIds call_ids() const;
  // Whether results of tools need their tool's name.
  bool needs_tool_names() const;
  // Whether a first message of the system's shows.
  bool takes_system() const;
  // Whether one of a developer does.
  bool takes_developer() const;
  // Whether a second one of this role, "system" or "developer", shows behind it.
  bool takes_second_system(const std::string& role) const;

  // Whether the template speaks of this role or field.
  bool mentions(const std::string& name) const { return source_.find(name) != std::string::npos; }

 private:
  template <typename T, typename Look>
  T once(std::optional<T>& found, Look&& look) const;

  std::optional<std::string> render(const Json& messages, const Json& tools = nullptr) const;
  // Whether `content` shows in a message of this role.
  bool shows(Role role, const Json& content, const CallForm& form) const;
  bool mentions_texts() const;
  CallForm find_call_form() const;

  Render render_;
  std::string source_;
  mutable std::mutex mutex_;  // Guards what follows.
  mutable std::chrono::steady_clock::duration spent_{};
  mutable std::array<std::optional<bool>, 4> takes_text_;
  mutable std::array<std::optional<bool>, 4> takes_parts_;
  mutable std::optional<CallForm> call_form_;
  mutable std::optional<CallIds> call_ids_;
  mutable std::optional<bool> needs_tool_names_;
  mutable std::optional<bool> takes_system_;
  mutable std::optional<bool> takes_developer_;
  mutable std::map<std::string, std::optional<bool>> takes_second_system_;
};

}  // namespace saker::text
