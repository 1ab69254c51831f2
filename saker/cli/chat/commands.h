// SPDX-License-Identifier: Apache-2.0
#pragma once

// The commands of a chat, '/' and a word, by their names. A line that begins with '/' and can't be
// meant as one is a question.

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

// What commands work on.
struct ChatShell {
  Chat& chat;
  const Terminal& terminal;
  LoadChatModel load;
  // Shows an answer while it is made by one of the chat's functions.
  std::function<void(const std::function<engine::GenerateResult(const StreamHooks&)>& ask)> answer;
  ViewOptions view = {};
  bool shows_stats = false;   // Behind each answer.
  std::string attached = {};  // Goes before the next question.
};

struct ChatCommand {
  enum class Then : std::uint8_t { kGoOn, kLeave };

  std::string_view name;
  std::string_view argument;  // As help shows it; empty: it takes none.
  std::string_view help;      // Empty: another name of the one before.
  std::string_view words;     // What may stand for the argument, with spaces between.
  bool takes_text;            // The argument may be more than one word.
  Then (*run)(ChatShell& shell, std::string_view argument);
};

std::span<const ChatCommand> chat_commands();

struct ChatLine {
  enum class Kind : std::uint8_t { kNothing, kQuestion, kCommand, kUnknown };

  Kind kind = Kind::kNothing;
  std::string text;                      // The question, or the command's argument.
  const ChatCommand* command = nullptr;  // Of kUnknown the nearest one, if one is near.
};

// Quotation marks around texts of several lines, and backslashes at ends of lines, are gone.
ChatLine parse_line(std::string_view line);

}  // namespace saker::cli
