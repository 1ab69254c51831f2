// SPDX-License-Identifier: Apache-2.0
#pragma once

// A model without weights that answers as a script says, for tests of servers and of what parses
// answers. Texts and templates are the bundled model's.
//
// The script is a list of answers, or {"context": TOKENS, "texts": FOLDER of another model's texts, "answers": a list}:
//   {"when": TEXT,            the last message or prompt has it; absent: any
//    "hangs_ms": N,           the model's thread hangs for that long
//    "events": [{"reasoning": TEXT} | {"content": TEXT} | {"call": {"id", "name", "arguments"}}
//               | {"sleep_ms": N} | {"repeat": N, "content": TEXT}],
//    "finish_reason": "stop" | "length",                  absent: stop
//    "stop_string": TEXT,
//    "cached_tokens": N,
//    "fails": {"code": "capacity", "message": TEXT},      a Failure in the stream
//    "refuses": {"code", "message"}}                      thrown by submit
// The first one that fits answers; without one an answer repeats the last message.

#include "saker/base/json/json.h"
#include "saker/engine/language_model.h"
#include "saker/engine/pass_clock.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace saker {

class FakeEngine : public engine::LanguageModel {
 public:
  explicit FakeEngine(Json script);
  // Waits for its answers.
  ~FakeEngine() override;

  engine::Stream submit(engine::Request request) override;
  // An adapter finds each token e^-0.5 times as probable as the base does.
  std::vector<engine::ScoreOutcome> score(std::span<const engine::ScoreRequest> requests) override;
  // Vectors and scores tell the lengths of the texts.

  engine::EmbedResult embed(const engine::EmbedRequest& request) override;
  engine::RerankResult rerank(const engine::RerankRequest& request) override;
  std::vector<std::int32_t> prompt_tokens(const engine::Request& request) const override;

  const engine::ModelFacts& facts() const override { return facts_; }

  const text::Tokenizer* tokenizer() const override { return prompts_->tokenizer().get(); }

  const text::ChatTemplate* chat_template() const override { return prompts_->chat_template(); }

  sample::SamplingOptions recommended_sampling() const override { return {}; }

  double busy_seconds() const override { return clock_.seconds(); }

  // Requests that were cancelled so far.
  int cancelled() const { return cancelled_; }

  // The last request.
  engine::Request last_request() const;

 private:
  struct Running;

  const Json* find_answer(const std::string& last) const;
  void play(const Json& answer, const engine::Request& request, Running& running);
  void play_choice(
      const Json& answer, const engine::Request& request, int choice, Running& running
  );

  Json script_;
  std::unique_ptr<const engine::Prompts> prompts_;
  engine::ModelFacts facts_;
  mutable std::mutex mutex_;
  engine::Request last_;
  engine::PassClock clock_;
  std::vector<std::jthread> threads_;
  std::atomic<int> cancelled_ = 0;
  std::atomic<std::uint64_t> next_id_ = 1;
};

}  // namespace saker
