// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/offer/offered_models.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/hub/cached_models.h"
#include "saker/hub/environment.h"
#include "saker/load/files/lm_studio_models.h"
#include "saker/load/files/named_models.h"
#include "saker/load/files/ollama_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <system_error>

namespace saker::cli {
namespace {

// A model on the hub, and the bytes that come over the network.
struct KnownModel {
  std::string_view name;
  std::string_view what;
  std::uintmax_t bytes;
};

// The least first. Chat models with weights of four to eight bits.
constexpr KnownModel kKnown[] = {
    {"Qwen/Qwen3-0.6B-GGUF:Q8_0", "small and fast", 639'446'688},
    {"Qwen/Qwen3-1.7B-GGUF:Q8_0", "small", 1'834'426'016},
    {"unsloth/Qwen3-4B-Instruct-2507-GGUF:Q4_K_M", "good for its size", 2'497'281'120},
    {"Qwen/Qwen3-8B-GGUF:Q4_K_M", "all-round", 5'027'783'488},
    {"ggml-org/gpt-oss-20b-GGUF", "reasoning, experts", 12'109'565'632},
    {"unsloth/Qwen3-30B-A3B-Instruct-2507-GGUF:Q4_K_M", "strong, experts", 18'556'689'568},
    {"ggml-org/gpt-oss-120b-GGUF", "strongest here, experts", 63'387'346'464},
};
constexpr std::size_t kMostToFetch = 3;
// The weights may take so much of the memory; the rest is for the cache and other programs.
constexpr double kShareOfWeights = 0.7;

// False for a configuration that says that it gives vectors, classes or images. Without a readable
// one, loading says what is wrong.
bool is_chat_model(const std::filesystem::path& folder) {
  constexpr std::string_view kEndings[] = {
      "ForCausalLM", "ForConditionalGeneration", "LMHeadModel"
  };
  try {
    const Json config = read_json_file(folder / "config.json");
    const auto found = config.find("architectures");
    if (found == config.end() || !found->is_array() || found->empty() ||
        !found->front().is_string()) {
      return true;
    }
    const std::string name = found->front().get<std::string>();
    return std::ranges::any_of(kEndings, [&](std::string_view ending) {
      return name.ends_with(ending);
    });
  } catch (const std::exception&) {
    return false;
  }
}

void add_cached(std::vector<OfferedModel>& models) {
  for (const hub::CachedModel& model : hub::cached_models(hub::cache_dir())) {
    if (model.revisions.empty()) {
      continue;
    }
    const hub::CachedRevision& newest = model.revisions.front();
    for (const hub::CachedGguf& gguf : newest.ggufs) {
      if (!gguf.label.starts_with("mmproj")) {
        models.push_back({fmt::format("{}:{}", model.repo, gguf.label), "hub cache", gguf.bytes});
      }
    }
    if (newest.has_safetensors && is_chat_model(newest.path)) {
      models.push_back({model.repo, "hub cache", newest.bytes});
    }
  }
}

}  // namespace

std::vector<OfferedModel> models_here() {
  std::vector<OfferedModel> models;
  for (const load::NamedModel& model : load::named_models()) {
    models.push_back({model.name, "named", model.bytes});
  }
  add_cached(models);
  for (const load::OllamaModel& model : load::ollama_models()) {
    models.push_back({std::string(load::kOllamaPrefix) + model.name, "ollama", model.bytes});
  }
  for (const load::LmStudioModel& model : load::lm_studio_models()) {
    models.push_back({model.path.native(), "LM Studio", model.bytes});
  }
  return models;
}

std::vector<OfferedModel> models_to_fetch(std::size_t memory_bytes) {
  const double most = kShareOfWeights * static_cast<double>(memory_bytes);
  std::vector<OfferedModel> models;
  for (auto at = std::rbegin(kKnown); at != std::rend(kKnown); ++at) {
    const bool is_least = std::next(at) == std::rend(kKnown);
    if (static_cast<double>(at->bytes) <= most && (models.size() < kMostToFetch || is_least)) {
      models.push_back({std::string(at->name), std::string(at->what), at->bytes});
    }
  }
  return models;
}

}  // namespace saker::cli
