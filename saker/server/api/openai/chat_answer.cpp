// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/openai/chat_answer.h"

#include "saker/base/json/json_numbers.h"
#include "saker/server/api/openai/errors.h"
#include "saker/server/api/openai/usage.h"
#include "saker/server/turns/collected_answer.h"
#include "saker/server/turns/content_tokens.h"
#include "saker/server/turns/custom_tool.h"
#include "saker/server/turns/token_json.h"
#include "saker/server/turns/wire.h"
#include "saker/text/tokenizer.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace saker::server::openai {
namespace {

// Shared parts of chunks and whole answers.
class ChatEncoder : public Encoder {
 public:
  ChatEncoder(Answering answering, int choices, const text::Tokenizer* tokenizer)
      : answering_(std::move(answering)),
        choices_(static_cast<std::size_t>(choices)),
        tokenizer_(tokenizer) {}

 protected:
  struct Choice {
    ContentTokens tokens;
    int calls = 0;
    std::optional<text::CallArguments> input = {};  // A custom tool gets it at once.
  };

  bool is_custom(const std::string& tool) const { return answering_.custom_tools.contains(tool); }

  Json logprobs_json(const std::vector<engine::TokenEvent>& tokens) const {
    return token_logprobs(tokens, tokenizer_);
  }

  static std::string_view reason_of(const engine::GenerateResult& result, const Choice& choice) {
    if (!is_whole(result)) {
      return "length";
    }
    return choice.calls > 0 ? "tool_calls" : "stop";
  }

  static Json stop_reason_of(const engine::GenerateResult& result) {
    return result.stop_string ? Json(*result.stop_string) : Json(nullptr);
  }

  Json head(std::string_view object) const {
    return {
        {"id", id_},
        {"object", object},
        {"created", created_},
        {"model", answering_.model},
        {"service_tier", answering_.service_tier},
        {"system_fingerprint", "saker-" SAKER_VERSION},
    };
  }

  Choice& choice(const engine::Event& event) {
    return choices_.at(static_cast<std::size_t>(event.choice));
  }

  Answering answering_;
  std::string id_ = new_id("chatcmpl-");
  std::int64_t created_ = unix_time();
  std::vector<Choice> choices_;
  const text::Tokenizer* tokenizer_;
  Usage usage_;
};

class ChatChunks : public ChatEncoder {
 public:
  using ChatEncoder::ChatEncoder;

  std::string begin() override {
    std::string out;
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      send(static_cast<int>(i), {{"role", "assistant"}, {"content", ""}}, out);
    }
    return out;
  }

  void add(engine::Event event, std::string& out) override {
    Choice& one = choice(event);
    const int index = event.choice;
    if (!std::holds_alternative<engine::TokenEvent>(event.what) &&
        !std::holds_alternative<text::CallArguments>(event.what)) {
      send_input(index, one, out);
    }
    if (auto* token = std::get_if<engine::TokenEvent>(&event.what)) {
      usage_.add_token();
      one.tokens.add(std::move(*token));
    } else if (const auto* thought = std::get_if<text::ReasoningPiece>(&event.what)) {
      one.tokens.drop();
      send(index, {{"reasoning_content", thought->text}, {"reasoning", thought->text}}, out);
    } else if (const auto* piece = std::get_if<text::ContentPiece>(&event.what)) {
      add_content(index, one, piece->text, out);
    } else if (const auto* call = std::get_if<text::CallOpened>(&event.what)) {
      one.tokens.drop();
      one.calls = std::max(one.calls, call->index + 1);
      open_call(index, one, *call, out);
    } else if (const auto* arguments = std::get_if<text::CallArguments>(&event.what)) {
      one.tokens.drop();
      if (one.input) {
        one.input->text += arguments->text;
      } else {
        send_call(
            index,
            {{"index", arguments->index}, {"function", {{"arguments", arguments->text}}}},
            out
        );
      }
    } else if (const auto* end = std::get_if<engine::End>(&event.what)) {
      usage_.add(*end->result, 0);
      send(index, Json::object(), out, end->result.get());
    }
  }

  std::string end() override {
    std::string out;
    if (answering_.includes_usage) {
      Json last = head("chat.completion.chunk");
      last["choices"] = Json::array();
      last["usage"] = usage_.json();
      out += sse(last);
    }
    return out + std::string(kSseDone);
  }

  std::string failure(const ApiError& error) override { return sse(error_json(error)); }

 private:
  void add_content(int index, Choice& one, const std::string& text, std::string& out) {
    const auto tokens = one.tokens.take(text);
    Json chunk = {{"index", index}, {"delta", {{"content", text}}}};
    chunk["logprobs"] = answering_.top_logprobs
                            ? Json{{"content", logprobs_json(tokens)}, {"refusal", nullptr}}
                            : Json(nullptr);
    chunk["finish_reason"] = nullptr;
    if (answering_.returns_token_ids) {
      Json& ids = chunk["token_ids"] = Json::array();
      for (const engine::TokenEvent& token : tokens) {
        ids.push_back(token.id);
      }
    }
    send_choice(std::move(chunk), out);
  }

  void open_call(int index, Choice& one, const text::CallOpened& call, std::string& out) {
    const bool takes_text = is_custom(call.name);
    Json opened = {
        {"index", call.index}, {"id", call.id}, {"type", takes_text ? "custom" : "function"}
    };
    if (takes_text) {
      opened["custom"] = {{"name", call.name}, {"input", ""}};
      one.input = {.index = call.index, .text = {}};
    } else {
      opened["function"] = {{"name", call.name}, {"arguments", ""}};
    }
    send_call(index, std::move(opened), out);
  }

  // The input of a custom tool is known when the arguments are whole.
  void send_input(int index, Choice& one, std::string& out) {
    if (const auto whole = std::exchange(one.input, std::nullopt)) {
      send_call(
          index, {{"index", whole->index}, {"custom", {{"input", custom_input(whole->text)}}}}, out
      );
    }
  }

  void send_call(int index, Json call, std::string& out) {
    send(index, {{"tool_calls", Json::array({std::move(call)})}}, out);
  }

  void send(
      int index, Json delta, std::string& out, const engine::GenerateResult* result = nullptr
  ) {
    Json chunk = {{"index", index}, {"delta", std::move(delta)}, {"logprobs", nullptr}};
    chunk["finish_reason"] =
        result == nullptr ? Json(nullptr)
                          : Json(reason_of(*result, choices_[static_cast<std::size_t>(index)]));
    if (result != nullptr) {
      chunk["stop_reason"] = stop_reason_of(*result);
    }
    send_choice(std::move(chunk), out);
  }

  void send_choice(Json choice, std::string& out) {
    Json chunk = head("chat.completion.chunk");
    chunk["choices"] = Json::array({std::move(choice)});
    if (answering_.continuous_usage) {
      chunk["usage"] = usage_.json();
    } else if (answering_.includes_usage) {
      chunk["usage"] = nullptr;
    }
    out += sse(chunk);
  }
};

class WholeChat : public ChatEncoder {
 public:
  WholeChat(Answering answering, int choices, const text::Tokenizer* tokenizer)
      : ChatEncoder(std::move(answering), choices, tokenizer), texts_(choices_.size()) {}

  void add(engine::Event event, std::string& /*out*/) override {
    Choice& one = choice(event);
    Texts& texts = texts_[static_cast<std::size_t>(event.choice)];
    if (auto* token = std::get_if<engine::TokenEvent>(&event.what)) {
      one.tokens.add(std::move(*token));
    } else if (const auto* thought = std::get_if<text::ReasoningPiece>(&event.what)) {
      one.tokens.drop();
      texts.reasoning += thought->text;
    } else if (const auto* piece = std::get_if<text::ContentPiece>(&event.what)) {
      texts.content += piece->text;
      for (engine::TokenEvent& of_content : one.tokens.take(piece->text)) {
        texts.tokens.push_back(std::move(of_content));
      }
    } else if (const auto* call = std::get_if<text::CallOpened>(&event.what)) {
      one.tokens.drop();
      ++one.calls;
      texts.calls[call->index] = {call->id, call->name, {}};
    } else if (const auto* arguments = std::get_if<text::CallArguments>(&event.what)) {
      one.tokens.drop();
      texts.calls[arguments->index].arguments += arguments->text;
    } else if (const auto* end = std::get_if<engine::End>(&event.what)) {
      usage_.add(*end->result, 0);
      texts.result = end->result;
    }
  }

  std::string end() override {
    Json body = head("chat.completion");
    Json& choices = body["choices"] = Json::array();
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      choices.push_back(choice_json(static_cast<int>(i), choices_[i], texts_[i]));
    }
    body["usage"] = usage_.json();
    if (answering_.prompt_top) {
      body["prompt_logprobs"] = std::move(answering_.prompt_logprobs);
    }
    return write_json(body);
  }

  std::string failure(const ApiError& /*error*/) override { return {}; }

 private:
  struct Call {
    std::string id;
    std::string name;
    std::string arguments;
  };

  struct Texts {
    std::string reasoning;
    std::string content;
    std::map<int, Call> calls;
    std::vector<engine::TokenEvent> tokens;
    std::shared_ptr<const engine::GenerateResult> result;
  };

  Json call_json(const Call& call) const {
    if (is_custom(call.name)) {
      return {
          {"id", call.id},
          {"type", "custom"},
          {"custom", {{"name", call.name}, {"input", custom_input(call.arguments)}}},
      };
    }
    return {
        {"id", call.id},
        {"type", "function"},
        {"function", {{"name", call.name}, {"arguments", call.arguments}}},
    };
  }

  Json choice_json(int index, const Choice& one, const Texts& texts) const {
    const bool only_calls = texts.content.empty() && !texts.calls.empty();
    Json message = {
        {"role", "assistant"},
        {"content", only_calls ? Json(nullptr) : Json(texts.content)},
        {"refusal", nullptr},
        {"annotations", Json::array()},
    };
    if (!texts.reasoning.empty()) {
      message["reasoning_content"] = texts.reasoning;
      message["reasoning"] = texts.reasoning;
    }
    if (!texts.calls.empty()) {
      Json& calls = message["tool_calls"] = Json::array();
      for (const auto& [_, call] : texts.calls) {
        calls.push_back(call_json(call));
      }
    }
    Json result = {{"index", index}, {"message", std::move(message)}};
    result["logprobs"] = answering_.top_logprobs
                             ? Json{{"content", logprobs_json(texts.tokens)}, {"refusal", nullptr}}
                             : Json(nullptr);
    result["finish_reason"] = reason_of(*texts.result, one);
    result["stop_reason"] = stop_reason_of(*texts.result);
    if (answering_.returns_token_ids) {
      result["token_ids"] = texts.result->tokens;
    }
    return result;
  }

  std::vector<Texts> texts_;
};

}  // namespace

std::unique_ptr<Encoder> chat_encoder(
    const Answering& answering, int choices, const text::Tokenizer* tokenizer
) {
  if (answering.streams) {
    return std::make_unique<ChatChunks>(answering, choices, tokenizer);
  }
  return std::make_unique<WholeChat>(answering, choices, tokenizer);
}

}  // namespace saker::server::openai
