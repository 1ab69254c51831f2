// SPDX-License-Identifier: Apache-2.0
#pragma once

// A chat that goes on: a model, the conversation with it, and what was set on the way. The engine's
// session keeps the rows of the last turn; what it knows changes no answer. One thread at a time.

#include "saker/base/json.h"
#include "saker/cli/chat/chat_model.h"
#include "saker/cli/chat/conversation.h"
#include "saker/cli/streaming.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace saker::cli {

class Chat {
 public:
  explicit Chat(ChatModel model);
  ~Chat();
  Chat(const Chat&) = delete;
  Chat& operator=(const Chat&) = delete;

  engine::Engine& engine() { return *model_.engine; }

  const ChatModel& model() const { return model_; }

  // The conversation goes on with another model.
  void change_model(ChatModel model);

  // Options that were set, as in records; they win over those of the model and the command line.
  const Json& settings() const { return settings_; }

  // Throws kInvalidArgument where a request can't have these.
  void set_settings(Json settings);
  // With them, without a prompt.
  engine::GenerateRequest options() const;

  const Conversation& conversation() const { return conversation_; }

  void set_conversation(Conversation conversation);
  // Back to the model's opening.
  void reset();

  // Makes room: the oldest turns leave while question and an answer do not fit into the model's
  // context. Returns how many left.
  int make_room(std::string_view question);
  // Asks and streams the answer, which joins the conversation. A turn that fails changes nothing.
  // Without a chat template the question is continued as it is, and nothing is remembered.
  engine::GenerateResult ask(std::string_view question, const StreamHooks& hooks);
  // Asks the last question again: where the seed was drawn, with another one.
  engine::GenerateResult ask_again(const StreamHooks& hooks);
  // Asks the model to sum the conversation up, which then stands for it. Nothing changes where the
  // answer is stopped.
  engine::GenerateResult compact(const StreamHooks& hooks);

  // Of the last answer.
  const std::optional<engine::GenerateResult>& last() const { return last_; }

 private:
  bool has_template() const { return model_.engine->chat_template() != nullptr; }

  ChatModel model_;
  std::uint64_t session_;
  Json settings_ = Json::object();
  Conversation conversation_;
  std::uint64_t again_ = 0;  // Questions asked again, for seeds.
  std::optional<engine::GenerateResult> last_;
};

}  // namespace saker::cli
