// SPDX-License-Identifier: Apache-2.0
#pragma once

// A chat as a value: the messages that the model is shown, in the form of OpenAI's API. It begins
// with an opening, which stays: the system's message, and what a named model says first. Turns
// follow: a question and what answers it. Whoever has the same messages gets the same answers, so
// a conversation can be copied, saved and gone on with.

#include "saker/base/json.h"
#include "saker/text/reasoning.h"

#include <optional>
#include <string>
#include <string_view>

namespace saker::cli {

class Conversation {
 public:
  explicit Conversation(Json opening = Json::array()) : opening_(std::move(opening)) {}

  // From messages, or an object with "messages"; system messages at the beginning are the opening.
  // Throws kInvalidArgument, beginning with `where`, for anything else.
  static Conversation parse(const Json& json, std::string_view where);

  // All of it: the opening and the turns.
  Json messages() const;
  // The same with a question behind it.
  Json asking(std::string_view question) const;

  void add_turn(std::string_view question, const text::AnswerParts& answer);
  int turns() const;
  // Takes the last turn away and gives its question; none where there is no turn.
  std::optional<std::string> undo();
  // Takes the oldest turn away; false where there is none.
  bool drop_oldest();

  // Takes all turns away.
  void clear() { turns_ = Json::array(); }

  // The system's message; empty: none.
  std::string system() const;
  void set_system(std::string_view text);

 private:
  Json opening_ = Json::array();
  Json turns_ = Json::array();
};

// What a message says, as one text.
std::string message_text(const Json& message);

}  // namespace saker::cli
