// SPDX-License-Identifier: Apache-2.0
#pragma once

// A chat: a model, the conversation with it, and settings made on the way. The engine's session
// keeps the last turn's rows; this only saves time and changes no answer. One thread at a time.

#include "saker/base/json/json.h"
#include "saker/cli/chat/chat_model.h"
#include "saker/cli/chat/conversation.h"
#include "saker/cli/requests/streaming.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::cli {

class Chat {
 public:
  explicit Chat(ChatModel model);
  ~Chat();
  Chat(const Chat&) = delete;
  Chat& operator=(const Chat&) = delete;

  engine::Engine& engine() { return *model_.engine; }

  const ChatModel& model() const { return model_; }

  // Continues the conversation with another model.
  void change_model(ChatModel model);

  // Options set in the chat, as in records; they override those of the model and the command line.
  const Json& settings() const { return settings_; }

  // Throws kInvalidArgument if a request can't have these.
  void set_settings(Json settings);
  // A request with these options, without a prompt.
  engine::Request options() const;

  const Conversation& conversation() const { return conversation_; }

  void set_conversation(Conversation conversation);
  // Returns to the model's opening.
  void reset();

  // If question and answer do not fit into the model's context, drops the oldest turns until the
  // prompt takes at most half of it. Returns the number of dropped turns.
  int make_room(std::string_view question);
  // Asks and streams the answer, which is added to the conversation. A turn that fails changes
  // nothing. Without a chat template the question is continued as it is, and nothing is remembered.
  engine::GenerateResult ask(std::string_view question, const StreamHooks& hooks);
  // The calls of the last answer, which wait for results.
  std::vector<text::ToolCall> open_calls() const;
  // Hands over the results, in the order of the calls, and streams the answer to them.
  engine::GenerateResult answer_calls(
      const std::vector<std::string>& results, const StreamHooks& hooks
  );
  // Asks the last question again, with a new seed if the last one was drawn.
  engine::GenerateResult ask_again(const StreamHooks& hooks);
  // Asks the model for a summary, which then replaces the conversation. Changes nothing if the
  // answer is stopped.
  engine::GenerateResult compact(const StreamHooks& hooks);

  // The result of the last answer.
  const std::optional<engine::GenerateResult>& last() const { return last_; }

 private:
  bool has_template() const { return model_.engine->chat_template() != nullptr; }

  ChatModel model_;
  std::uint64_t session_;
  Json settings_ = Json::object();
  Conversation conversation_;
  std::uint64_t again_ = 0;  // Number of repeated questions, for seeds.
  std::optional<engine::GenerateResult> last_;
};

}  // namespace saker::cli
