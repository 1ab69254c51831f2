// SPDX-License-Identifier: Apache-2.0
#include "saker/base/json/json_numbers.h"
#include "saker/server/api/openai/completion.h"
#include "saker/server/api/openai/errors.h"
#include "saker/server/api/openai/usage.h"
#include "saker/server/turns/collected_answer.h"
#include "saker/server/turns/wire.h"
#include "saker/text/tokenizer.h"

#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace saker::server::openai {
namespace {

// Log-probabilities in the form of completions: lists side by side.
class TokenLists {
 public:
  void add(
      const std::string& token,
      std::optional<double> logprob,
      const std::vector<std::pair<std::string, double>>& top
  ) {
    tokens_.push_back(token);
    logprobs_.push_back(logprob ? Json(finite_logprob(*logprob)) : Json(nullptr));
    Json alternatives = Json::object();
    for (const auto& [text, value] : top) {
      alternatives.emplace(text, finite_logprob(value));  // Equal texts: the likelier one stays.
    }
    top_.push_back(logprob ? std::move(alternatives) : Json(nullptr));
    offsets_.push_back(offset_);
    offset_ += token.size();
  }

  // The lists so far; they begin anew, and offsets go on.
  Json take() {
    Json json = {
        {"tokens", std::exchange(tokens_, Json::array())},
        {"token_logprobs", std::exchange(logprobs_, Json::array())},
        {"top_logprobs", std::exchange(top_, Json::array())},
        {"text_offset", std::exchange(offsets_, Json::array())},
    };
    return json;
  }

 private:
  Json tokens_ = Json::array();
  Json logprobs_ = Json::array();
  Json top_ = Json::array();
  Json offsets_ = Json::array();
  std::size_t offset_ = 0;
};

class CompletionEncoder : public Encoder {
 public:
  CompletionEncoder(
      const CompletionRequest& completion,
      std::vector<EchoedPrompt> echoed,
      const text::Tokenizer* tokenizer
  )
      : answering_(completion.answering),
        choices_each_(static_cast<std::size_t>(completion.request.output.n)),
        has_no_answer_(completion.has_no_answer),
        choices_(completion.prompts.size() * choices_each_),
        tokenizer_(tokenizer) {
    prompt_logprobs_ = completion.prompt_logprobs;
    for (std::size_t i = 0; i < choices_.size() && !echoed.empty(); ++i) {
      add_prompt(echoed[i / choices_each_], choices_[i]);
    }
    prompt_tokens_of_no_answer_ = 0;
    for (const EchoedPrompt& prompt : echoed) {
      prompt_tokens_of_no_answer_ += prompt.tokens.size();
    }
  }

  void add(engine::Event event, std::string& out) override {
    Choice& choice = choices_.at(static_cast<std::size_t>(event.choice));
    if (const auto* token = std::get_if<engine::TokenEvent>(&event.what)) {
      usage_.add_token();
      if (answering_.top_logprobs) {
        choice.tokens.add(token->bytes, token->logprob, texts_of(token->top));
      }
    } else if (const auto* piece = std::get_if<text::ContentPiece>(&event.what)) {
      if (answering_.streams) {
        out += sse(chunk(event.choice, piece->text, nullptr));
      } else {
        choice.text += piece->text;
      }
    } else if (const auto* end = std::get_if<engine::End>(&event.what)) {
      usage_.add(*end->result, static_cast<std::size_t>(event.choice) / choices_each_);
      choice.result = end->result;
      if (answering_.streams) {
        out += sse(chunk(event.choice, "", end->result.get()));
      }
    }
  }

  std::string end() override {
    if (answering_.streams) {
      std::string out;
      if (answering_.includes_usage) {
        Json last = head();
        last["choices"] = Json::array();
        last["usage"] = usage_.json();
        out += sse(last);
      }
      return out + std::string(kSseDone);
    }
    Json body = head();
    Json& choices = body["choices"] = Json::array();
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      Choice& one = choices_[i];
      choices.push_back(choice_json(static_cast<int>(i), one.text, one.result.get()));
    }
    body["usage"] = usage_.json();
    if (has_no_answer_) {
      body["usage"]["prompt_tokens"] = prompt_tokens_of_no_answer_;
      body["usage"]["total_tokens"] = prompt_tokens_of_no_answer_;
    }
    return write_json(body);
  }

  std::string failure(const ApiError& error) override { return sse(error_json(error)); }

 private:
  struct Choice {
    std::string text;
    TokenLists tokens;
    std::shared_ptr<const engine::GenerateResult> result;
  };

  std::string text_of(std::int32_t id) const {
    return tokenizer_ == nullptr ? std::to_string(id) : tokenizer_->token_bytes(id);
  }

  std::vector<std::pair<std::string, double>> texts_of(
      const std::vector<std::pair<std::int32_t, double>>& top
  ) const {
    std::vector<std::pair<std::string, double>> texts;
    for (const auto& [id, logprob] : top) {
      texts.emplace_back(text_of(id), logprob);
    }
    return texts;
  }

  void add_prompt(const EchoedPrompt& prompt, Choice& choice) const {
    choice.text = prompt.text;
    for (std::size_t i = 0; i < prompt.logprobs.size(); ++i) {
      choice.tokens.add(text_of(prompt.tokens[i]), prompt.logprobs[i], texts_of(prompt.top[i]));
    }
  }

  Json head() const {
    return {
        {"id", id_},
        {"object", "text_completion"},
        {"created", created_},
        {"model", answering_.model},
        {"system_fingerprint", "saker-" SAKER_VERSION},
    };
  }

  Json choice_json(int index, const std::string& text, const engine::GenerateResult* result) {
    Choice& choice = choices_[static_cast<std::size_t>(index)];
    Json json = {{"index", index}, {"text", text}};
    json["logprobs"] = answering_.top_logprobs ? choice.tokens.take() : Json(nullptr);
    if (!prompt_logprobs_.empty()) {
      json["prompt_logprobs"] =
          prompt_logprobs_.at(static_cast<std::size_t>(index) / choices_each_);
    }
    const bool is_cut = has_no_answer_ || (result != nullptr && !is_whole(*result));
    json["finish_reason"] = result == nullptr && !has_no_answer_ ? Json(nullptr)
                            : is_cut                             ? Json("length")
                                                                 : Json("stop");
    if (result != nullptr) {
      json["stop_reason"] = result->stop_string ? Json(*result->stop_string) : Json(nullptr);
    }
    return json;
  }

  Json chunk(int index, const std::string& text, const engine::GenerateResult* result) {
    Json json = head();
    json["choices"] = Json::array({choice_json(index, text, result)});
    if (answering_.includes_usage) {
      json["usage"] = answering_.continuous_usage ? usage_.json() : Json(nullptr);
    }
    return json;
  }

  Answering answering_;
  std::size_t choices_each_;
  bool has_no_answer_;
  std::size_t prompt_tokens_of_no_answer_ = 0;
  std::string id_ = new_id("cmpl-");
  std::int64_t created_ = unix_time();
  std::vector<Choice> choices_;
  std::vector<Json> prompt_logprobs_;  // One per prompt, or none.
  const text::Tokenizer* tokenizer_;
  Usage usage_;
};

}  // namespace

std::unique_ptr<Encoder> completion_encoder(
    const CompletionRequest& completion,
    std::vector<EchoedPrompt> echoed,
    const text::Tokenizer* tokenizer
) {
  return std::make_unique<CompletionEncoder>(completion, std::move(echoed), tokenizer);
}

}  // namespace saker::server::openai
