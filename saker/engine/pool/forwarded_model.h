// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saker/engine/language_model.h"

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace saker::engine {

// A model that hands all calls to another one, for those that change some of them.
class ForwardedModel : public LanguageModel {
 public:
  Stream submit(Request request) override { return model_->submit(std::move(request)); }

  std::vector<ScoreOutcome> score(std::span<const ScoreRequest> requests) override {
    return model_->score(requests);
  }

  EmbedResult embed(const EmbedRequest& request) override { return model_->embed(request); }

  RerankResult rerank(const RerankRequest& request) override { return model_->rerank(request); }

  std::vector<std::int32_t> prompt_tokens(const Request& request) const override {
    return model_->prompt_tokens(request);
  }

  const ModelFacts& facts() const override { return model_->facts(); }

  const text::Tokenizer* tokenizer() const override { return model_->tokenizer(); }

  const text::ChatTemplate* chat_template() const override { return model_->chat_template(); }

  sample::SamplingOptions recommended_sampling() const override {
    return model_->recommended_sampling();
  }

  double busy_seconds() const override { return model_->busy_seconds(); }

 protected:
  explicit ForwardedModel(std::unique_ptr<LanguageModel> model) : model_(std::move(model)) {}

  LanguageModel& base() const { return *model_; }

 private:
  std::unique_ptr<LanguageModel> model_;
};

}  // namespace saker::engine
