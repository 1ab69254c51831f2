// SPDX-License-Identifier: Apache-2.0
// Functions about a model as a whole.
#include "saker/base/json/json.h"
#include "saker/capi/model.h"
#include "saker/capi/status.h"

#include <memory>
#include <string>
#include <utility>

namespace saker::capi {
namespace {

// By the names of a request's options.
Json sampling_json(const sample::SamplingOptions& options) {
  return {
      {"temperature", options.temperature},
      {"top_p", options.top_p},
      {"top_k", options.top_k},
      {"min_p", options.min_p},
      {"repetition_penalty", options.repetition_penalty},
  };
}

Json facts_json(const engine::Engine& engine) {
  const engine::ModelFacts& facts = engine.facts();
  return {
      {"requested", facts.requested},
      {"path", facts.path.string()},
      {"model_type", facts.model_type},
      {"instruction_set", facts.instruction_set},
      {"vocab_size", facts.vocab_size},
      {"context_length", facts.context_length},
      {"weight_bytes", facts.weight_bytes},
      {"load_s", facts.load_s},
      {"drafter", facts.drafter},
      {"warnings", facts.warnings},
      {"has_tokenizer", engine.tokenizer() != nullptr},
      {"has_chat_template", engine.chat_template() != nullptr},
      {"stop_tokens", engine.stop_tokens()},
      {"recommended_sampling", sampling_json(engine.recommended_sampling())},
  };
}

Json statistics_json(const engine::Engine& engine) {
  const engine::QueueStats queue = engine.queue_stats();
  const engine::PrefixCacheStats cache = engine.prefix_cache_stats();
  return {
      {"running", queue.running},
      {"waiting", queue.waiting},
      {"waiting_tokens", queue.waiting_tokens},
      {"wait_s", queue.wait_s},
      {"busy_s", engine.busy_seconds()},
      {"prefix_cache",
       {{"lookups", cache.lookups},
        {"hits", cache.hits},
        {"prompt_tokens", cache.prompt_tokens},
        {"restored_tokens", cache.restored_tokens},
        {"loaded_tokens", cache.loaded_tokens},
        {"evictions", cache.evictions},
        {"bytes", cache.bytes}}},
  };
}

}  // namespace
}  // namespace saker::capi

namespace capi = saker::capi;

SakerStatus saker_model_load(
    const char* model, const char* options, SakerModel** out, SakerText** message
) {
  return capi::guarded(message, [&] {
    SakerModel*& place = capi::cleared(out);
    auto loaded = std::make_unique<SakerModel>(std::make_shared<capi::Model>(model, options));
    place = loaded.release();
    return SAKER_OK;
  });
}

void saker_model_free(SakerModel* model) {
  delete model;
}

SakerStatus saker_model_facts(const SakerModel* model, SakerText** json, SakerText** message) {
  return capi::guarded(message, [&] {
    SakerText*& place = capi::cleared(json);
    return capi::give(capi::facts_json(capi::required(model, "model").model->engine()), place);
  });
}

SakerStatus saker_model_statistics(const SakerModel* model, SakerText** json, SakerText** message) {
  return capi::guarded(message, [&] {
    SakerText*& place = capi::cleared(json);
    return capi::give(capi::statistics_json(capi::required(model, "model").model->engine()), place);
  });
}

SakerStatus saker_model_add_adapter(
    SakerModel* model, const char* name, const char* path, SakerText** message
) {
  return capi::guarded(message, [&] {
    capi::required(model, "model")
        .model->add_adapter(
            std::string(capi::text_or_empty(name, "name")),
            std::string(capi::text_or_empty(path, "path"))
        );
    return SAKER_OK;
  });
}

SakerStatus saker_model_adapters(const SakerModel* model, SakerText** json, SakerText** message) {
  return capi::guarded(message, [&] {
    SakerText*& place = capi::cleared(json);
    saker::Json list = saker::Json::array();
    for (const auto& adapter : capi::required(model, "model").model->adapters()) {
      list.push_back({{"name", adapter.name}, {"path", adapter.dir.string()}});
    }
    return capi::give(list, place);
  });
}
