// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/pool/model_pool.h"
#include "saker/load/files/model_dir.h"

#include <system_error>
#include <utility>

namespace saker::engine {
namespace {

bool holds_weights(const std::filesystem::path& file) {
  return file.extension() == ".safetensors" || file.extension() == ".gguf";
}

// The files of a folder with weights, or of one file's folder that belong to it.
std::size_t weight_files_bytes(const std::filesystem::path& model) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(model, ignored)) {
    const std::string name = model.filename().string();
    const std::size_t part = name.find("-00001-of-");
    if (part == std::string::npos) {
      const auto bytes = std::filesystem::file_size(model, ignored);
      return ignored ? 0 : static_cast<std::size_t>(bytes);
    }
    std::size_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(model.parent_path(), ignored)) {
      const bool is_part = entry.path().filename().string().starts_with(name.substr(0, part)) &&
                           holds_weights(entry.path());
      bytes += is_part ? static_cast<std::size_t>(entry.file_size(ignored)) : 0;
    }
    return bytes;
  }
  std::size_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(model, ignored)) {
    bytes += holds_weights(entry.path()) ? static_cast<std::size_t>(entry.file_size(ignored)) : 0;
  }
  return bytes;
}

// An engine that its model owns.
class OwnedEngine : public LanguageModel {
 public:
  explicit OwnedEngine(std::unique_ptr<Engine> engine)
      : engine_(std::move(engine)), model_(as_language_model(*engine_)) {}

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

 private:
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<LanguageModel> model_;
};

}  // namespace

std::size_t memory_needed(const std::filesystem::path& model, const EngineOptions& options) {
  const std::filesystem::path path = load::resolve_model(model.string());
  const std::size_t draft = options.draft.empty() ? 0 : weight_files_bytes(options.draft);
  return weight_files_bytes(path) + draft + options.prefix_cache;
}

std::function<std::unique_ptr<LanguageModel>()> engine_loader(
    std::filesystem::path model, EngineOptions options
) {
  return [model = std::move(model), options = std::move(options)] {
    return std::make_unique<OwnedEngine>(Engine::load(model, options));
  };
}

}  // namespace saker::engine
