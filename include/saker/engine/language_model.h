// SPDX-License-Identifier: Apache-2.0
#pragma once

// A model as servers see it: requests in, streams of events out. An engine is one; tests have
// scripted ones. Any thread may call any member.

#include "saker/engine/engine.h"
#include "saker/engine/request.h"
#include "saker/engine/stream.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace saker::engine {

class LanguageModel {
 public:
  LanguageModel() = default;
  LanguageModel(const LanguageModel&) = delete;
  LanguageModel& operator=(const LanguageModel&) = delete;
  virtual ~LanguageModel() = default;

  // These are as Engine's members of the same names.
  virtual Stream submit(Request request) = 0;
  virtual std::vector<ScoreOutcome> score(std::span<const ScoreRequest> requests) = 0;
  virtual EmbedResult embed(const EmbedRequest& request) = 0;
  virtual RerankResult rerank(const RerankRequest& request) = 0;
  virtual std::vector<std::int32_t> prompt_tokens(const Request& request) const = 0;
  virtual const ModelFacts& facts() const = 0;
  virtual const text::Tokenizer* tokenizer() const = 0;
  virtual const text::ChatTemplate* chat_template() const = 0;
  virtual sample::SamplingOptions recommended_sampling() const = 0;

  // As Engine's; 0 for models without a thread of their own.
  virtual double busy_seconds() const { return 0.0; }
};

// The engine as a model. REQUIRES: the engine outlives it.
std::unique_ptr<LanguageModel> as_language_model(Engine& engine);

}  // namespace saker::engine
