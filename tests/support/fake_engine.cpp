// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_engine.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/engine/stream_state.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <string>
#include <utility>
#include <variant>

namespace saker {
namespace {

constexpr std::int64_t kContext = 2048;  // If the script has none.
constexpr double kLogprob = -0.5;

ErrorCode code_of(const std::string& name) {
  for (const ErrorCode code :
       {ErrorCode::kInvalidArgument,
        ErrorCode::kNotFound,
        ErrorCode::kUnsupported,
        ErrorCode::kCorruptData,
        ErrorCode::kCapacity,
        ErrorCode::kCancelled}) {
    if (error_code_name(code) == name) {
      return code;
    }
  }
  return ErrorCode::kInternal;
}

Error error_of(const Json& given) {
  return {code_of(given.at("code").get<std::string>()), given.at("message").get<std::string>()};
}

std::string text_of(const Json& content) {
  return content.is_string() ? content.get<std::string>() : content.dump();
}

std::string last_text(const engine::Prompt& prompt) {
  if (!prompt.messages) {
    return prompt.text.value_or("");
  }
  // Clients put words of the system behind the user's.
  for (auto message = prompt.messages->rbegin(); message != prompt.messages->rend(); ++message) {
    if (message->value("role", "") != "system") {
      return text_of(message->value("content", Json("")));
    }
  }
  return {};
}

}  // namespace

struct FakeEngine::Running {
  std::shared_ptr<engine::StreamState> state;
  std::shared_ptr<std::atomic<bool>> is_cancelled;
};

FakeEngine::FakeEngine(Json script) {
  std::filesystem::path texts = std::filesystem::path(SAKER_SOURCE_DIR) / "models/demo";
  facts_.context_length = kContext;
  if (script.is_object()) {
    facts_.context_length = script.value("context", kContext);
    texts = script.value("texts", texts.native());
    script = Json(script.value("answers", Json::array()));
  }
  script_ = std::move(script);
  prompts_ =
      std::make_unique<const engine::Prompts>(engine::Prompts::read(text::ModelTexts(texts)));
  facts_.requested = "fake";
  facts_.path = texts;
  facts_.model_type = "fake";
  facts_.vocab_size = prompts_->tokenizer()->vocab_size();
}

FakeEngine::~FakeEngine() = default;

engine::Request FakeEngine::last_request() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

std::vector<std::int32_t> FakeEngine::prompt_tokens(const engine::Request& request) const {
  return prompts_->encode(request, facts_.context_length);
}

const Json* FakeEngine::find_answer(const std::string& last) const {
  for (const Json& answer : script_) {
    if (!answer.contains("when") ||
        last.find(answer["when"].get<std::string>()) != std::string::npos) {
      return &answer;
    }
  }
  return nullptr;
}

engine::Stream FakeEngine::submit(engine::Request request) {
  const auto tokens = prompt_tokens(request);
  require(
      static_cast<std::int64_t>(tokens.size()) < facts_.context_length,
      ErrorCode::kInvalidArgument,
      "the prompt has {} tokens, but the model's context is {} tokens long",
      tokens.size(),
      facts_.context_length
  );
  const std::string last = last_text(request.prompt);
  const Json* found = find_answer(last);
  const Json echo = {{"events", Json::array({{{"content", last}}})}};
  const Json answer = found == nullptr ? echo : *found;
  if (answer.contains("refuses")) {
    throw error_of(answer["refuses"]);
  }
  Running running;
  running.is_cancelled = std::make_shared<std::atomic<bool>>(false);
  running.state = std::make_shared<engine::StreamState>(
      next_id_++,
      request.output.n,
      [this, flag = running.is_cancelled] { cancelled_ += flag->exchange(true) ? 0 : 1; }
  );
  const std::lock_guard lock(mutex_);
  last_ = request;
  threads_.emplace_back([this, answer, request, running]() mutable {
    play(answer, request, running);
  });
  return engine::Stream(running.state);
}

void FakeEngine::play(const Json& answer, const engine::Request& request, Running& running) {
  if (answer.contains("hangs_ms")) {
    const engine::PassClock::Pass pass(clock_);
    std::this_thread::sleep_for(std::chrono::milliseconds(answer["hangs_ms"].get<int>()));
  }
  for (int choice = 0; choice < request.output.n; ++choice) {
    play_choice(answer, request, choice, running);
  }
}

void FakeEngine::play_choice(
    const Json& answer, const engine::Request& request, int choice, Running& running
) {
  const auto push = [&](engine::Event::What what) {
    running.state->push({choice, std::move(what)});
  };
  auto result = std::make_shared<engine::GenerateResult>();
  result->prompt_tokens = prompt_tokens(request);
  const auto say = [&](const std::string& text, bool is_content) {
    std::string piece;  // Whole characters, as an engine's pieces are.
    for (const std::int32_t id : tokenizer()->encode(text, {.add_special_tokens = false})) {
      const std::string bytes = tokenizer()->token_bytes(id);
      piece += bytes;
      result->tokens.push_back(id);
      if (request.output.token_events) {
        engine::TokenEvent token{.id = id, .bytes = bytes, .logprob = kLogprob};
        for (int i = 0; i < request.output.logprobs; ++i) {
          token.top.emplace_back(i == 0 ? id : i, kLogprob - i);
        }
        push(std::move(token));
      }
      if (find_invalid_utf8(piece)) {
        continue;
      }
      if (is_content) {
        push(text::ContentPiece{std::exchange(piece, {})});
      } else {
        push(text::ReasoningPiece{std::exchange(piece, {})});
      }
    }
    result->text += text;
  };
  int calls = 0;
  push(engine::PromptProgress{
      static_cast<int>(result->prompt_tokens.size()), static_cast<int>(result->prompt_tokens.size())
  });
  for (const Json& event : answer.value("events", Json::array())) {
    if (event.contains("sleep_ms")) {
      for (int left = event["sleep_ms"].get<int>(); left > 0 && !*running.is_cancelled; left -= 5) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    }
    for (int i = 0; i < event.value("repeat", 1) && !*running.is_cancelled; ++i) {
      if (event.contains("reasoning")) {
        say(event["reasoning"].get<std::string>(), false);
      } else if (event.contains("content")) {
        say(event["content"].get<std::string>(), true);
      }
    }
    if (event.contains("call")) {
      const Json& call = event["call"];
      push(text::CallOpened{calls, call.at("id"), call.at("name")});
      const std::string arguments = call.at("arguments").get<std::string>();
      push(text::CallArguments{calls, arguments.substr(0, arguments.size() / 2)});
      push(text::CallArguments{calls, arguments.substr(arguments.size() / 2)});
      push(text::CallClosed{calls++});
    }
  }
  if (answer.contains("fails")) {
    return push(engine::Failure{std::make_exception_ptr(error_of(answer["fails"]))});
  }
  result->finish_reason = *running.is_cancelled ? engine::FinishReason::kCancelled
                          : answer.value("finish_reason", "stop") == "length"
                              ? engine::FinishReason::kLength
                              : engine::FinishReason::kStop;
  if (answer.contains("stop_string")) {
    result->stop_string = answer["stop_string"].get<std::string>();
  }
  result->stats.prompt_tokens = static_cast<int>(result->prompt_tokens.size());
  result->stats.generation_tokens = static_cast<int>(result->tokens.size());
  result->stats.cached_tokens = answer.value("cached_tokens", 0);
  result->stats.generation_tps = 100.0;
  result->stats.time_to_first_token_s = 0.01;
  push(engine::End{std::move(result)});
}

engine::EmbedResult FakeEngine::embed(const engine::EmbedRequest& request) {
  engine::EmbedResult result;
  for (const engine::EmbedInput& input : request.inputs) {
    const auto size = std::visit([](const auto& one) { return one.size(); }, input);
    std::vector<float> vector = {static_cast<float>(size), 0.5F, -1.0F, 0.25F};
    vector.resize(request.dimensions > 0 ? static_cast<std::size_t>(request.dimensions) : 4);
    result.embeddings.push_back(std::move(vector));
    result.tokens += static_cast<std::int64_t>(size);
  }
  return result;
}

engine::RerankResult FakeEngine::rerank(const engine::RerankRequest& request) {
  engine::RerankResult result;
  for (const std::string& document : request.documents) {
    result.scores.push_back(1.0 / (1.0 + static_cast<double>(document.size())));
    result.tokens += static_cast<std::int64_t>(document.size());
  }
  return result;
}

std::vector<engine::ScoreOutcome> FakeEngine::score(std::span<const engine::ScoreRequest> requests
) {
  std::vector<engine::ScoreOutcome> outcomes;
  for (const engine::ScoreRequest& request : requests) {
    engine::ScoreResult result;
    result.tokens = prompts_->encode(request).tokens;
    std::vector<engine::View> views = request.views;
    views.resize(std::max<std::size_t>(views.size(), 1));
    for (std::size_t at = 0; at < views.size(); ++at) {
      const double logprob = views[at].key == "base" ? kLogprob : 2 * kLogprob;
      engine::ViewScores scores{.view = views[at].key};
      for (std::size_t i = 0; i < result.tokens.size(); ++i) {
        if (request.take_logits) {  // The likelier, the lower the id.
          std::vector<float> logits(static_cast<std::size_t>(facts_.vocab_size));
          std::iota(logits.rbegin(), logits.rend(), 0.0F);
          request.take_logits(at, i, logits);
        }
        scores.logprobs.push_back(i == 0 ? std::nullopt : std::optional(logprob));
        scores.sum += i == 0 ? 0.0 : logprob;
      }
      result.views.push_back(std::move(scores));
    }
    outcomes.emplace_back(std::move(result));
  }
  return outcomes;
}

}  // namespace saker
