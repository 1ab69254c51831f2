// SPDX-License-Identifier: Apache-2.0
#include "saker/base/error.h"
#include "saker/engine/pool/forwarded_model.h"
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

// A model that owns its engine. Its base only refers to the engine, which ends first.
class OwnedEngine : public ForwardedModel {
 public:
  explicit OwnedEngine(std::unique_ptr<Engine> engine)
      : ForwardedModel(as_language_model(*engine)), engine_(std::move(engine)) {}

 private:
  std::unique_ptr<Engine> engine_;
};

}  // namespace

std::size_t memory_needed(const std::filesystem::path& model, const EngineOptions& options) {
  const std::filesystem::path path = load::resolve_model(model.string());
  const std::size_t draft = options.draft.empty() ? 0 : weight_files_bytes(options.draft);
  const bool is_bounded =
      options.cache_memory > 0 && options.cache_memory != default_cache_memory_bytes();
  return weight_files_bytes(path) + draft +
         (is_bounded ? options.cache_memory : options.prefix_cache);
}

std::function<std::unique_ptr<LanguageModel>(const std::stop_token& stop)> engine_loader(
    std::filesystem::path model, EngineOptions options
) {
  return [model = std::move(model), options = std::move(options)](const std::stop_token& stop) {
    EngineOptions stoppable = options;
    stoppable.on_load = [stop, on_load = options.on_load](int done, int total) {
      require(!stop.stop_requested(), ErrorCode::kCancelled, "the load was stopped");
      if (on_load) {
        on_load(done, total);
      }
    };
    return std::make_unique<OwnedEngine>(Engine::load(model, stoppable));
  };
}

}  // namespace saker::engine
