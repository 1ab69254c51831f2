// SPDX-License-Identifier: Apache-2.0
#pragma once

// The commands of a chat: '/' and a word. A line that begins with '/' but can't be meant as a
// command is a question.

#include "saker/cli/chat/answer_view.h"
#include "saker/cli/chat/chat.h"
#include "saker/cli/chat/chat_model.h"
#include "saker/cli/chat/terminal.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace saker::cli {

// The state that commands change.
struct ChatShell {
  Chat& chat;
  const Terminal& terminal;
  LoadChatModel load;
  // Calls `ask`, one of the chat's functions, and shows the answer while it is generated.
  std::function<void(const std::function<engine::GenerateResult(const StreamHooks&)>& ask)> answer;
  ViewOptions view = {};
  bool shows_stats = false;   // After each answer.
  std::string attached = {};  // Text to put before the next question.

  void note(std::string_view text) const { print_note(terminal, text); }
};

struct ChatCommand {
  enum class Then : std::uint8_t { kGoOn, kLeave };

  std::string_view name;
  std::string_view argument;  // As help shows it; empty: no argument.
  std::string_view help;      // Empty: an alias of the entry before.
  std::string_view words;     // Values of the argument, separated by spaces.
  bool takes_text;            // The argument may be more than one word.
  Then (*run)(ChatShell& shell, std::string_view argument);
};

std::span<const ChatCommand> chat_commands();

struct ChatLine {
  enum class Kind : std::uint8_t { kNothing, kQuestion, kCommand, kUnknown };

  Kind kind = Kind::kNothing;
  std::string text;                      // The question, or the command's argument.
  const ChatCommand* command = nullptr;  // For kUnknown the nearest command, if one is near.
};

// Removes quotation marks around texts of several lines, and backslashes at ends of lines.
ChatLine parse_line(std::string_view line);

}  // namespace saker::cli
