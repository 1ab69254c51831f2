// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/anthropic/messages_answer.h"

#include "saker/base/json/json_numbers.h"
#include "saker/server/api/anthropic/routes.h"
#include "saker/server/turns/collected_answer.h"
#include "saker/server/turns/wire.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace saker::server::anthropic {
namespace {

// Clients keep it and send it back; nothing reads it here.
constexpr std::string_view kSignature = "c2FrZXI=";

std::string_view reason_of(
    const engine::GenerateResult& result, bool has_calls, const MessageFacts& facts
) {
  if (!is_whole(result)) {
    const auto tokens = static_cast<std::int64_t>(result.stats.prompt_tokens) +
                        static_cast<std::int64_t>(result.tokens.size());
    const bool is_full = facts.context > 0 && tokens >= facts.context;
    return is_full ? "model_context_window_exceeded" : "max_tokens";
  }
  return has_calls ? "tool_use" : result.stop_string ? "stop_sequence" : "end_turn";
}

Json usage_json(std::int64_t prompt, const engine::GenerateResult* result) {
  const std::int64_t cached = result == nullptr ? 0 : result->stats.cached_tokens;
  return {
      {"input_tokens", prompt - cached},
      {"cache_creation_input_tokens", 0},
      {"cache_read_input_tokens", cached},
      {"output_tokens", result == nullptr ? 0 : result->stats.generation_tokens},
  };
}

Json stop_sequence_of(const engine::GenerateResult& result) {
  return result.stop_string ? Json(*result.stop_string) : Json(nullptr);
}

Json message_json(const MessageFacts& facts, const std::string& id, Json content) {
  return {
      {"id", id},
      {"type", "message"},
      {"role", "assistant"},
      {"model", facts.model},
      {"content", std::move(content)},
      {"stop_reason", nullptr},
      {"stop_sequence", nullptr},
  };
}

class MessageStream : public Encoder {
 public:
  explicit MessageStream(MessageFacts facts) : facts_(std::move(facts)) {}

  std::string begin() override {
    Json message = message_json(facts_, new_id("msg_"), Json::array());
    message["usage"] = usage_json(facts_.prompt_tokens, nullptr);
    return sse("message_start", {{"type", "message_start"}, {"message", std::move(message)}}) +
           sse("ping", {{"type", "ping"}});
  }

  void add(engine::Event event, std::string& out) override {
    if (const auto* thought = std::get_if<text::ReasoningPiece>(&event.what)) {
      open(Block::kThinking, {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}}, out);
      delta({{"type", "thinking_delta"}, {"thinking", thought->text}}, out);
    } else if (const auto* piece = std::get_if<text::ContentPiece>(&event.what)) {
      open(Block::kText, {{"type", "text"}, {"text", ""}}, out);
      delta({{"type", "text_delta"}, {"text", piece->text}}, out);
    } else if (const auto* call = std::get_if<text::CallOpened>(&event.what)) {
      close(out);
      has_calls_ = true;
      open(
          Block::kTool,
          {{"type", "tool_use"}, {"id", call->id}, {"name", call->name}, {"input", Json::object()}},
          out
      );
    } else if (const auto* more = std::get_if<text::CallArguments>(&event.what)) {
      delta({{"type", "input_json_delta"}, {"partial_json", more->text}}, out);
    } else if (std::holds_alternative<text::CallClosed>(event.what)) {
      close(out);
    } else if (const auto* end = std::get_if<engine::End>(&event.what)) {
      finish(*end->result, out);
    }
  }

  std::string end() override { return sse("message_stop", {{"type", "message_stop"}}); }

  std::string failure(const ApiError& error) override { return sse("error", error_json(error)); }

 private:
  enum class Block { kNone, kThinking, kText, kTool };

  void open(Block block, Json content, std::string& out) {
    if (block_ == block) {
      return;
    }
    close(out);
    block_ = block;
    out += sse(
        "content_block_start",
        {{"type", "content_block_start"}, {"index", index_}, {"content_block", std::move(content)}}
    );
  }

  void delta(Json content, std::string& out) {
    out +=
        sse("content_block_delta",
            {{"type", "content_block_delta"}, {"index", index_}, {"delta", std::move(content)}});
  }

  void close(std::string& out) {
    if (block_ == Block::kNone) {
      return;
    }
    if (block_ == Block::kThinking) {
      delta({{"type", "signature_delta"}, {"signature", kSignature}}, out);
    }
    out += sse("content_block_stop", {{"type", "content_block_stop"}, {"index", index_}});
    ++index_;
    block_ = Block::kNone;
  }

  void finish(const engine::GenerateResult& result, std::string& out) {
    if (index_ == 0 && block_ == Block::kNone) {  // Clients look at the first block.
      open(Block::kText, {{"type", "text"}, {"text", ""}}, out);
    }
    close(out);
    out +=
        sse("message_delta",
            {{"type", "message_delta"},
             {"delta",
              {{"stop_reason", reason_of(result, has_calls_, facts_)},
               {"stop_sequence", stop_sequence_of(result)}}},
             {"usage", usage_json(result.stats.prompt_tokens, &result)}});
  }

  MessageFacts facts_;
  Block block_ = Block::kNone;
  int index_ = 0;
  bool has_calls_ = false;
};

class WholeMessage : public Encoder {
 public:
  explicit WholeMessage(MessageFacts facts) : facts_(std::move(facts)) {}

  void add(engine::Event event, std::string& /*out*/) override { answer_.add(event); }

  std::string end() override {
    Json content = Json::array();
    if (!answer_.reasoning.empty()) {
      content.push_back(
          {{"type", "thinking"}, {"thinking", answer_.reasoning}, {"signature", kSignature}}
      );
    }
    if (!answer_.content.empty() || (answer_.calls.empty() && content.empty())) {
      content.push_back({{"type", "text"}, {"text", answer_.content}});
    }
    for (const auto& [_, call] : answer_.calls) {
      content.push_back(
          {{"type", "tool_use"},
           {"id", call.id},
           {"name", call.name},
           {"input", arguments_object(call.arguments)}}
      );
    }
    const engine::GenerateResult& result = *answer_.result;
    Json message = message_json(facts_, new_id("msg_"), std::move(content));
    message["stop_reason"] = reason_of(result, !answer_.calls.empty(), facts_);
    message["stop_sequence"] = stop_sequence_of(result);
    message["usage"] = usage_json(result.stats.prompt_tokens, &result);
    return write_json(message);
  }

  std::string failure(const ApiError& /*error*/) override { return {}; }

 private:
  MessageFacts facts_;
  CollectedAnswer answer_;
};

}  // namespace

std::unique_ptr<Encoder> message_stream(MessageFacts facts) {
  return std::make_unique<MessageStream>(std::move(facts));
}

std::unique_ptr<Encoder> whole_message(MessageFacts facts) {
  return std::make_unique<WholeMessage>(std::move(facts));
}

}  // namespace saker::server::anthropic
