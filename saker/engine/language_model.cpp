// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/language_model.h"

#include <utility>

namespace saker::engine {
namespace {

class EngineModel : public LanguageModel {
 public:
  explicit EngineModel(Engine& engine) : engine_(engine) {}

  Stream submit(Request request) override { return engine_.submit(std::move(request)); }

  std::vector<ScoreOutcome> score(std::span<const ScoreRequest> requests) override {
    return engine_.score(requests);
  }

  EmbedResult embed(const EmbedRequest& request) override { return engine_.embed(request); }

  RerankResult rerank(const RerankRequest& request) override { return engine_.rerank(request); }

  std::vector<std::int32_t> prompt_tokens(const Request& request) const override {
    return engine_.prompt_tokens(request);
  }

  const ModelFacts& facts() const override { return engine_.facts(); }

  double busy_seconds() const override { return engine_.busy_seconds(); }

  const text::Tokenizer* tokenizer() const override { return engine_.tokenizer(); }

  const text::ChatTemplate* chat_template() const override { return engine_.chat_template(); }

  sample::SamplingOptions recommended_sampling() const override {
    return engine_.recommended_sampling();
  }

 private:
  Engine& engine_;
};

}  // namespace

std::unique_ptr<LanguageModel> as_language_model(Engine& engine) {
  return std::make_unique<EngineModel>(engine);
}

}  // namespace saker::engine
