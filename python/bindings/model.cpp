// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/model.h"

#include "saker/load/files/model_dir.h"

#include "python/bindings/embed.h"
#include "python/bindings/generate.h"
#include "python/bindings/score.h"
#include "python/bindings/text.h"
#include "python/bindings/token_ids.h"
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <optional>
#include <utility>

namespace nb = nanobind;

namespace saker::python {
namespace {

std::vector<engine::NamedAdapter> named(
    const std::vector<std::pair<std::string, std::string>>& adapters
) {
  std::vector<engine::NamedAdapter> result;
  result.reserve(adapters.size());
  for (const auto& [name, dir] : adapters) {
    result.push_back({name, dir});
  }
  engine::check_adapter_names(result);
  return result;
}

// One adapter may have to be in the weights; of several, base and all share passes. A draft is
// named as the model is.
engine::EngineOptions completed(
    engine::EngineOptions options,
    const std::string& model,
    const std::vector<engine::NamedAdapter>& adapters
) {
  if (adapters.size() == 1) {
    options.adapter = adapters.front().dir;
  }
  options.mtp = !options.draft.empty();
  if (options.draft == "auto") {
    options.draft = load::find_draft(load::resolve_model(model)).value_or(std::filesystem::path());
  } else if (options.mtp) {
    options.draft = load::resolve_model(options.draft.string());
  }
  return options;
}

const text::Tokenizer& tokenizer(const engine::Engine& engine) {
  const text::Tokenizer* const found = engine.tokenizer();
  require(found != nullptr, ErrorCode::kUnsupported, "the model has no tokenizer.json");
  return *found;
}

std::vector<std::int32_t> encode(
    const Model& model, const nb::str& given, bool add_special_tokens
) {
  std::string text = utf8_of(given, "text");
  const nb::gil_scoped_release release;
  const auto engine = model.engine();
  if (!add_special_tokens) {
    return tokenizer(*engine).encode(text, {.add_special_tokens = false});
  }
  engine::Request request;
  request.prompt.text = std::move(text);
  return engine->prompt_tokens(request);
}

nb::str decode(const Model& model, const TokenIds& given, bool skip_special_tokens) {
  const std::vector<std::int32_t> tokens = token_ids(given);
  std::string text;
  {
    const nb::gil_scoped_release release;
    text = tokenizer(*model.engine()).decode(tokens, {.skip_special_tokens = skip_special_tokens});
  }
  return as_text(text);
}

std::string render_chat(
    const Model& model,
    const nb::str& messages,
    const std::optional<nb::str>& tools,
    const nb::str& kwargs,
    bool add_generation_prompt
) {
  const auto engine = model.engine();
  const text::ChatTemplate* const chat = engine->chat_template();
  require(chat != nullptr, ErrorCode::kUnsupported, "the model has no chat template");
  text::RenderOptions options;
  options.add_generation_prompt = add_generation_prompt;
  options.template_kwargs = json_of(kwargs, "template_kwargs");
  if (tools) {
    options.tools = json_of(*tools, "tools");
  }
  const Json parsed = json_of(messages, "messages");
  const nb::gil_scoped_release release;
  return chat->render(parsed, options);
}

// Left as it is in a fork: to end it is to wait for its thread.
std::shared_ptr<engine::Engine> ended_in(
    OwnProcess process, std::unique_ptr<engine::Engine> engine
) {
  return {engine.release(), [process](engine::Engine* last) {
            if (process.is_here()) {
              std::default_delete<engine::Engine>()(last);
            }
          }};
}

void bind_prefix_cache(nb::module_& module) {
  using engine::PrefixCacheStats;
  nb::class_<PrefixCacheStats>(
      module, "PrefixCacheStats", "What prompts shared since the model was loaded."
  )
      .def_ro("lookups", &PrefixCacheStats::lookups, "Prompts that were looked up.")
      .def_ro("hits", &PrefixCacheStats::hits, "Of these, found at least one token.")
      .def_ro("prompt_tokens", &PrefixCacheStats::prompt_tokens, "Of all prompts looked up.")
      .def_ro("restored_tokens", &PrefixCacheStats::restored_tokens, "Of these, not run again.")
      .def_ro("loaded_tokens", &PrefixCacheStats::loaded_tokens, "That came from the folder.")
      .def_ro("evictions", &PrefixCacheStats::evictions)
      .def_ro("bytes", &PrefixCacheStats::bytes, "Held now.");
}

void bind_facts(nb::module_& module) {
  using engine::ModelFacts;
  nb::class_<ModelFacts>(module, "ModelFacts", "What a loaded model is.")
      .def_ro("requested", &ModelFacts::requested, "The model as it was named to ``load``.")
      .def_prop_ro(
          "path",
          [](const ModelFacts& self) { return self.path.string(); },
          "The folder or file that this led to."
      )
      .def_ro("model_type", &ModelFacts::model_type, "Of config.json, such as ``qwen3``.")
      .def_ro("instruction_set", &ModelFacts::instruction_set, "That the CPU kernels run on.")
      .def_ro("vocab_size", &ModelFacts::vocab_size)
      .def_ro("context_length", &ModelFacts::context_length, "In tokens.")
      .def_ro("weight_bytes", &ModelFacts::weight_bytes, "Read by one decode step.")
      .def_ro("load_s", &ModelFacts::load_s, "Seconds from open to ready.")
      .def_ro("warnings", &ModelFacts::warnings);
}

}  // namespace

Model::Model(
    const std::string& name,
    const engine::EngineOptions& options,
    std::vector<engine::NamedAdapter> adapters,
    const engine::ScoreInstrumentsOptions& instruments
)
    : adapters_(std::move(adapters)),
      instruments_(instruments),
      engine_(ended_in(process_, engine::Engine::load(name, completed(options, name, adapters_)))),
      path_(engine_->facts().path.string()) {}

std::shared_ptr<engine::Engine> Model::engine() const {
  process_.check();
  const std::lock_guard lock(mutex_);
  require(engine_ != nullptr, ErrorCode::kInvalidArgument, "the model is closed");
  return engine_;
}

void Model::close() {
  instruments_.close();
  std::shared_ptr<engine::Engine> last;  // Ends outside of the lock.
  const std::lock_guard lock(mutex_);
  last.swap(engine_);
}

void bind_model(nb::module_& module) {
  bind_facts(module);
  bind_prefix_cache(module);
  nb::class_<Model> model(module, "Model", "A loaded model: see saker.Model.");
  bind_embed(model);
  model
      .def(
          "__init__",
          [](Model* self,
             const std::string& name,
             const std::vector<std::pair<std::string, std::string>>& adapters,
             const engine::EngineOptions& options,
             std::size_t cache_entries,
             const std::string& trace) {
            const nb::gil_scoped_release release;
            new (self) Model(
                name, options, named(adapters), {.cache_entries = cache_entries, .trace = trace}
            );
          },
          nb::arg("name"),
          nb::arg("adapters"),
          nb::arg("options"),
          nb::arg("cache_entries"),
          nb::arg("trace")
      )
      .def_prop_ro("path", &Model::path)
      .def_prop_ro("facts", [](const Model& self) { return self.engine()->facts(); })
      .def("close", &Model::close, nb::call_guard<nb::gil_scoped_release>())
      .def(
          "view_id",
          [](const Model& self, std::string_view key) { return engine::view_id(self.view(key)); },
          nb::arg("key")
      )
      .def("score", score, nb::arg("requests"), nb::arg("views"), nb::sig(kScoreSignature))
      .def("logits", logits, nb::arg("request"), nb::arg("view"), nb::sig(kLogitsSignature))
      .def(
          "differences",
          differences,
          nb::arg("request"),
          nb::arg("views"),
          nb::sig("def differences(self, request: ScoreRequest, views: list[str]) -> Differences")
      )
      .def("preflight", preflight, nb::arg("views"))
      .def_prop_ro(
          "prefix_cache_stats",
          [](const Model& self) { return self.engine()->prefix_cache_stats(); }
      )
      .def_prop_ro("score_stats", [](Model& self) { return self.instruments().stats(); })
      .def(
          "set_current_probe",
          [](Model& self, std::string name) {
            self.instruments().set_current_probe(std::move(name));
          },
          nb::arg("name")
      )
      .def("request", request_for, nb::arg("view"))
      .def("submit", submit, nb::arg("request"))
      .def("encode", encode, nb::arg("text"), nb::arg("add_special_tokens"))
      .def("decode", decode, nb::arg("tokens"), nb::arg("skip_special_tokens"))
      .def_prop_ro("stop_tokens", [](const Model& self) { return self.engine()->stop_tokens(); })
      .def(
          "special_token",
          [](const Model& self, std::string_view name) {
            return self.engine()->special_token(name);
          },
          nb::arg("name")
      )
      .def(
          "render_chat",
          render_chat,
          nb::arg("messages"),
          nb::arg("tools").none(),
          nb::arg("template_kwargs"),
          nb::arg("add_generation_prompt")
      );
}

}  // namespace saker::python
