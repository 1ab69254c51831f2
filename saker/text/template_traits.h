// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds out which messages one chat template takes. It renders short conversations that differ in
// one thing, and looks at the output. Each probe runs at most once, on first use. A slow template
// gets no further probes and counts as taking the usual form. Any thread may call any member.

#include "saker/base/json/json.h"

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

// The form in which a template takes an assistant's tool calls.
struct CallForm {
  bool arguments_are_text = false;  // Otherwise an object.
  bool content_is_null = false;     // Otherwise text beside the calls, possibly empty.
  bool takes_text = true;           // The template does not fail for arguments as text.
};

enum class CallIds : std::uint8_t {
  kAsGiven,         // Any id, or none.
  kRequired,        // Without ids the template fails.
  kNineCharacters,  // Nine letters or digits, as in Mistral's templates.
};

class TemplateTraits {
 public:
  // Returns the prompt; empty if the template fails. `tools` is null or a list.
  using Render = std::function<std::optional<std::string>(const Json& messages, const Json& tools)>;

  // `source` is the template's text.
  TemplateTraits(Render render, std::string source);

  // True if content may be a text; otherwise it has to be a list of parts.
  bool takes_text(Role role) const;
  // True if content may be a list of parts.
  bool takes_parts(Role role) const;
  CallForm call_form() const;
  CallIds call_ids() const;
  // True if tool results need the tool's name.
  bool needs_tool_names() const;
  // True if a first message of the system is shown.
  bool takes_system() const;
  // True if a first message of a developer is shown.
  bool takes_developer() const;
  // True if a second message of this role, "system" or "developer", is shown after the first.
  bool takes_second_system(const std::string& role) const;

  // True if the template's text contains this role or field.
  bool mentions(const std::string& name) const { return source_.find(name) != std::string::npos; }

 private:
  template <typename T, typename Look>
  T once(std::optional<T>& found, Look&& look) const;

  std::optional<std::string> render(const Json& messages, const Json& tools = nullptr) const;
  // True if `content` in a message of this role is shown.
  bool shows(Role role, const Json& content, const CallForm& form) const;
  bool mentions_texts() const;
  CallForm find_call_form() const;

  Render render_;
  std::string source_;
  mutable std::mutex mutex_;  // Guards the members below.
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
