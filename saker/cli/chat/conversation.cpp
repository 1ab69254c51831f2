// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/chat/conversation.h"

#include <string>
#include <string_view>
#include <utility>

namespace saker::cli {

Conversation::Conversation(engine::Engine& engine, engine::GenerateRequest defaults, Json opening)
    : engine_(engine),
      defaults_(std::move(defaults)),
      opening_(std::move(opening)),
      session_(engine.open_session()) {
  reset();
}

Conversation::~Conversation() {
  engine_.close_session(session_);
}

engine::GenerateResult Conversation::ask(std::string_view question, const StreamHooks& hooks) {
  engine::GenerateRequest request = defaults_;
  if (engine_.chat_template() == nullptr) {
    request.prompt = std::string(question);
  } else {
    request.session = session_;
    request.messages = messages_;
    request.messages->push_back({{"role", "user"}, {"content", question}});
  }
  Json asked = request.messages.value_or(Json::array());
  engine::GenerateResult result = stream_request(engine_, std::move(request), hooks);
  messages_ = std::move(asked);
  messages_.push_back({{"role", "assistant"}, {"content", result.text}});
  ++turns_;
  stats_ = result.stats;
  return result;
}

void Conversation::reset() {
  engine_.close_session(session_);
  session_ = engine_.open_session();
  messages_ = opening_;
  turns_ = 0;
  stats_.reset();
}

}  // namespace saker::cli
