// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/ollama/answer.h"

#include "saker/base/json/json_numbers.h"
#include "saker/server/turns/collected_answer.h"
#include "saker/server/turns/content_tokens.h"
#include "saker/server/turns/token_json.h"
#include "saker/server/turns/wire.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace saker::server::ollama {
namespace {

using Clock = std::chrono::steady_clock;

std::int64_t nanoseconds(double seconds) {
  constexpr double kPerSecond = 1e9;
  return static_cast<std::int64_t>(seconds * kPerSecond);
}

Json call_json(int index, const CollectedCall& call) {
  return {
      {"id", call.id},
      {"function",
       {{"index", index}, {"name", call.name}, {"arguments", arguments_object(call.arguments)}}},
  };
}

class Answer : public Encoder {
 public:
  Answer(
      const OllamaRequest& request, const text::Tokenizer* tokenizer, std::chrono::nanoseconds load
  )
      : model_(request.model),
        form_(request.form),
        streams_(request.streams),
        has_logprobs_(request.has_logprobs),
        tokenizer_(tokenizer),
        load_(load) {}

  void add(engine::Event event, std::string& out) override {
    answer_.add(event);
    add_token(event);
    if (!streams_) {
      return;
    }
    if (const auto* thought = std::get_if<text::ReasoningPiece>(&event.what)) {
      out += json_line(line("", thought->text));
    } else if (const auto* piece = std::get_if<text::ContentPiece>(&event.what)) {
      Json with_content = line(piece->text, "");
      add_logprobs(with_content);
      out += json_line(with_content);
    } else if (const auto* call = std::get_if<text::CallClosed>(&event.what)) {
      Json with_call = line("", "");
      if (form_ == Form::kChat) {
        with_call["message"]["tool_calls"] =
            Json::array({call_json(call->index, answer_.calls[call->index])});
      }
      out += json_line(with_call);
    }
    if (!std::holds_alternative<engine::End>(event.what)) {
      answer_.reasoning.clear();  // It is sent.
      answer_.content.clear();
    }
  }

  std::string end() override {
    Json last = line(answer_.content, answer_.reasoning);
    if (!streams_ && !answer_.calls.empty() && form_ == Form::kChat) {
      Json& calls = last["message"]["tool_calls"] = Json::array();
      for (const auto& [index, call] : answer_.calls) {
        calls.push_back(call_json(index, call));
      }
    }
    add_logprobs(last);
    add_end(last);
    return streams_ ? json_line(last) : write_json(last);
  }

  std::string failure(const ApiError& error) override {
    return json_line({{"error", error.what()}});
  }

 private:
  // Keeps the log-probabilities of content.
  void add_token(engine::Event& event) {
    if (auto* token = std::get_if<engine::TokenEvent>(&event.what)) {
      tokens_.add(std::move(*token));
    } else if (const auto* piece = std::get_if<text::ContentPiece>(&event.what)) {
      for (engine::TokenEvent& of_content : tokens_.take(piece->text)) {
        unsent_.push_back(std::move(of_content));
      }
    } else if (!std::holds_alternative<engine::PromptProgress>(event.what) &&
               !std::holds_alternative<engine::End>(event.what)) {
      tokens_.drop();
    }
  }

  void add_logprobs(Json& line) {
    if (has_logprobs_ && !unsent_.empty()) {
      line["logprobs"] = token_logprobs(std::exchange(unsent_, {}), tokenizer_);
    }
  }

  Json line(const std::string& content, const std::string& thoughts) const {
    Json json = {{"model", model_}, {"created_at", utc_time(std::chrono::system_clock::now())}};
    if (form_ == Form::kChat) {
      json["message"] = {{"role", "assistant"}, {"content", content}};
    } else {
      json["response"] = content;
    }
    if (!thoughts.empty()) {
      (form_ == Form::kChat ? json["message"] : json)["thinking"] = thoughts;
    }
    json["done"] = false;
    return json;
  }

  void add_end(Json& last) const {
    const engine::GenerateResult& result = *answer_.result;
    const engine::GenerateStats& stats = result.stats;
    const double answering =
        stats.generation_tps > 0 ? stats.generation_tokens / stats.generation_tps : 0.0;
    // The engine's clock began before this one's.
    const std::chrono::duration<double> since_start = Clock::now() - start_;
    const auto prompt_time = nanoseconds(stats.time_to_first_token_s);
    const auto answer_time = nanoseconds(answering);
    const auto total = std::max(nanoseconds(since_start.count()), prompt_time + answer_time);
    last["done"] = true;
    last["done_reason"] = is_whole(result) ? "stop" : "length";
    last["total_duration"] = total + load_.count();
    last["load_duration"] = load_.count();
    last["prompt_eval_count"] = stats.prompt_tokens;
    last["prompt_eval_duration"] = prompt_time;
    last["eval_count"] = stats.generation_tokens;
    last["eval_duration"] = answer_time;
  }

  std::string model_;
  Form form_;
  bool streams_;
  bool has_logprobs_;
  const text::Tokenizer* tokenizer_;
  std::chrono::nanoseconds load_;
  CollectedAnswer answer_;
  ContentTokens tokens_;
  std::vector<engine::TokenEvent> unsent_;  // Content alone.
  Clock::time_point start_ = Clock::now();
};

}  // namespace

std::unique_ptr<Encoder> answer_encoder(
    const OllamaRequest& request, const text::Tokenizer* tokenizer, std::chrono::nanoseconds load
) {
  return std::make_unique<Answer>(request, tokenizer, load);
}

Json loaded_json(const std::string& model, Form form, std::string_view reason) {
  Json json = {{"model", model}, {"created_at", utc_time(std::chrono::system_clock::now())}};
  if (form == Form::kChat) {
    json["message"] = {{"role", "assistant"}, {"content", ""}};
  } else {
    json["response"] = "";
  }
  json["done"] = true;
  json["done_reason"] = reason;
  return json;
}

}  // namespace saker::server::ollama
