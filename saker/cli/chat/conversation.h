// SPDX-License-Identifier: Apache-2.0
#pragma once

// A chat as a value: the messages for the model, in the form of OpenAI's API. It begins with a
// fixed opening: the system's message, and a named model's first messages. Turns follow: a question
// and its answer. Equal messages give equal answers, so a conversation can be copied, saved and
// continued.

#include "saker/base/json/json.h"
#include "saker/text/answer_parts.h"

#include <optional>
#include <string>
#include <string_view>

namespace saker::cli {

class Conversation {
 public:
  explicit Conversation(Json opening = Json::array()) : opening_(std::move(opening)) {}

  // Parses a list of messages, or an object with "messages"; leading system messages are the
  // opening. Throws kInvalidArgument, beginning with `where`, for anything else.
  static Conversation parse(const Json& json, std::string_view where);

  // The opening and all turns.
  Json messages() const;
  // As above, followed by a question.
  Json asking(std::string_view question) const;

  void add_turn(std::string_view question, const text::AnswerParts& answer);
  // More of the last turn: the result of a call, and the answer to all results.
  void add_result(const text::ToolCall& call, std::string_view result);
  void add_answer(const text::AnswerParts& answer);
  int turns() const;
  // Removes the last turn and returns its question; empty if there is no turn.
  std::optional<std::string> undo();
  // Removes the oldest turn; false if there is none.
  bool drop_oldest();

  // Removes all turns.
  void clear() { turns_ = Json::array(); }

  // The system's message; empty: none.
  std::string system() const;
  void set_system(std::string_view text);

 private:
  Json opening_ = Json::array();
  Json turns_ = Json::array();
};

// A message's content as one text.
std::string message_text(const Json& message);

}  // namespace saker::cli
