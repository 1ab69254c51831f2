// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/serve/model_options.h"

#include "saker/base/error.h"
#include "saker/base/memory.h"
#include "saker/base/utf8.h"
#include "saker/cli/options/checks.h"
#include "saker/cli/serve/presets_file.h"
#include "saker/engine/pool/model_details.h"
#include "saker/hub/pull.h"
#include "saker/load/files/adapter_files.h"
#include "saker/load/files/model_dir.h"
#include "saker/server/kv_events/block_watch.h"
#include "saker/server/models/keep_alive.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

namespace saker::cli {
namespace {

namespace fs = std::filesystem;

// Loads that run while the program starts show it.
using SharedBar = std::shared_ptr<std::unique_ptr<LoadBar>>;

std::vector<engine::NamedAdapter> read_adapters(const ModelOptions& options) {
  std::vector<engine::NamedAdapter> adapters;
  for (const std::string& text : options.adapters) {
    const std::size_t equals = text.find('=');
    const bool is_named = equals != std::string::npos && equals > 0;
    const fs::path path = equals == std::string::npos ? text : text.substr(equals + 1);
    require(
        load::may_be_adapter(path),
        ErrorCode::kNotFound,
        "--adapter: {} is no folder and no GGUF file",
        quote_path(path)
    );
    const fs::path plain = path.lexically_normal();
    const fs::path last = load::is_gguf_file(path) ? plain.stem() : plain.filename();
    adapters.push_back({is_named ? text.substr(0, equals) : last.string(), path});
  }
  engine::check_adapter_names(adapters);
  return adapters;
}

// The name under which clients ask for a model: that of a repo or of the last folder.
std::string name_of(const std::string& model) {
  if (model.empty()) {
    return "saker-demo";
  }
  std::error_code ignored;
  if (!fs::exists(model, ignored)) {
    return model;
  }
  const fs::path path = fs::weakly_canonical(model, ignored);
  return path.filename().string();
}

// The models of the command line as presets, then those of the file.
std::vector<ModelPreset> all_presets(const ModelOptions& options) {
  std::vector<ModelPreset> presets;
  for (const std::string& model : options.models) {
    presets.push_back({.model = model, .names = {name_of(model)}});
  }
  if (!options.presets_file.empty()) {
    std::ranges::move(read_presets(options.presets_file), std::back_inserter(presets));
  }
  if (presets.empty()) {
    presets.push_back({.model = "", .names = {name_of("")}});
  }
  if (!options.aliases.empty() || !options.adapters.empty()) {
    require(
        presets.size() == 1,
        ErrorCode::kInvalidArgument,
        "--alias and --adapter are for a single model; several have them in the file of --models"
    );
    if (!options.aliases.empty()) {
      presets.front().names = options.aliases;
    }
    std::ranges::move(read_adapters(options), std::back_inserter(presets.front().adapters));
  }
  if (presets.size() == 1 && options.presets_file.empty()) {
    presets.front().is_pinned = !options.keep_alive;
  }
  return presets;
}

engine::PoolModel pool_model(
    const ModelPreset& preset, const ModelOptions& options, const SharedBar& bar
) {
  ModelArgs args = options.common;
  args.model = preset.model;
  args.draft = preset.draft.value_or(args.draft);
  args.engine.chats = true;
  args.engine.batch = preset.batch.value_or(args.engine.batch);
  args.engine.prefix_cache = preset.prefix_cache.value_or(args.engine.prefix_cache);
  args.engine.prefill_step = preset.prefill_step.value_or(args.engine.prefill_step);
  args.engine.fast_prefill = preset.fast_prefill.value_or(args.engine.fast_prefill);
  if (preset.cache_memory) {
    args.engine.cache_memory = *preset.cache_memory;
  }
  engine::EngineOptions loading = engine_options(args);
  loading.on_load = [bar](int done, int total) {
    if (*bar != nullptr) {
      (*bar)->set(done, total);
    }
  };
  if (options.kv_events != nullptr) {
    const auto watch = std::make_shared<server::kv_events::BlockWatch>(
        [publisher = options.kv_events,
         name = preset.names.front()](server::kv_events::BlockChange change) {
          publisher->add(name, std::move(change));
        }
    );
    loading.on_prefix_rows =
        [watch](std::string_view key, std::span<const std::int32_t> tokens, std::int64_t held) {
          watch->rows(key, tokens, held);
        };
  }
  engine::PoolModel model;
  model.bytes = engine::memory_needed(preset.model, loading);
  model.is_pinned = preset.is_pinned;
  model.keep_alive = preset.keep_alive.value_or(options.keep_alive.value_or(model.keep_alive));
  model.load = [load = engine::engine_loader(preset.model, loading),
                preset = preset.preset](const std::stop_token& stop) {
    auto loaded = load(stop);
    for (const std::string& warning : loaded->facts().warnings) {
      spdlog::warn("{}", warning);
    }
    return engine::with_preset(std::move(loaded), preset);
  };
  return model;
}

void add(
    server::ModelCatalog& catalog,
    const ModelPreset& preset,
    const ModelOptions& options,
    const SharedBar& bar
) {
  engine::ModelDetails details = engine::read_model_details(preset.model);
  if (preset.preset.context > 0) {
    details.context_length = std::min(details.context_length, preset.preset.context);
  }
  catalog.add(
      {.names = preset.names, .adapters = preset.adapters},
      std::move(details),
      pool_model(preset, options, bar)
  );
}

// Waits until the model is loaded.
void load_now(server::ModelCatalog& catalog, const std::string& name, const SharedBar& bar) {
  *bar = std::make_unique<LoadBar>();
  catalog.load(name);
  bar->reset();
}

server::PullState state_of(std::span<const hub::FileProgress> files) {
  server::PullState state{.status = "pulling"};
  for (const hub::FileProgress& file : files) {
    state.done += file.done;
    state.total += file.total;
  }
  return state;
}

}  // namespace

std::shared_ptr<server::ModelCatalog> make_catalog(const ModelOptions& options) {
  const std::vector<ModelPreset> presets = all_presets(options);
  // A single model has always been loaded whatever it needs.
  const std::size_t memory = options.memory.value_or(
      presets.size() == 1 ? std::numeric_limits<std::size_t>::max() : usable_memory_bytes()
  );
  auto catalog = std::make_shared<server::ModelCatalog>(
      server::CatalogOptions{.memory_bytes = memory, .takes_any_name = options.takes_any_name}
  );
  const auto bar = std::make_shared<std::unique_ptr<LoadBar>>();
  for (const ModelPreset& preset : presets) {
    add(*catalog, preset, options, bar);
  }
  for (const ModelPreset& preset : presets) {
    if (preset.is_pinned || presets.size() == 1) {
      load_now(*catalog, preset.names.front(), bar);
    }
  }
  return catalog;
}

server::ModelRouteOptions route_options(
    const ModelOptions& options, const std::shared_ptr<server::ModelCatalog>& catalog
) {
  server::ModelRouteOptions routes;
  if (!options.adapter_dir.empty()) {
    require(
        fs::is_directory(options.adapter_dir),
        ErrorCode::kNotFound,
        "--adapter-dir: {} is no folder",
        options.adapter_dir.string()
    );
    routes.adapter_dir = options.adapter_dir;
  }
  if (options.allows_pull) {
    routes.pull = [options, weak = std::weak_ptr(catalog)](
                      const std::string& name, const auto& progress, const std::stop_token& stop
                  ) {
      const hub::ModelName model = hub::require_model_name(name);
      progress({.status = "pulling manifest"});
      hub::PullOptions pulling;
      pulling.stop = stop;
      pulling.progress = [&](std::span<const hub::FileProgress> files) {
        progress(state_of(files));
      };
      hub::pull(model, pulling);
      const auto shared = weak.lock();
      if (shared != nullptr && !shared->has(name)) {
        const ModelPreset preset = {.model = hub::to_string(model), .names = {name}};
        add(*shared, preset, options, std::make_shared<std::unique_ptr<LoadBar>>());
      }
    };
  }
  return routes;
}

void add_model_options(CLI::App& command, ModelOptions& options) {
  command
      .add_option(
          "MODEL,-m,--model",
          options.models,
          "Folders, GGUF files, Hugging Face repo ids, or names of `saker list`; several are "
          "loaded "
          "when they are asked for [the bundled demo model]"
      )
      ->type_name("MODEL");
  command
      .add_option(
          "--models", options.presets_file, "A TOML or JSON file of models and their options"
      )
      ->type_name("FILE")
      ->group("Model");
  command
      .add_option_function<std::string>(
          "--memory",
          [&options](const std::string& text) { options.memory = parse_size("--memory", text); },
          "Memory for all loaded models together: bytes, 512M, 20G [the machine's]"
      )
      ->type_name("SIZE")
      ->group("Model");
  command
      .add_option_function<std::string>(
          "--keep-alive",
          [&options](const std::string& text) {
            try {
              options.keep_alive = server::parse_keep_alive(text);
            } catch (const std::exception& error) {
              throw CLI::ValidationError("--keep-alive", error.what());
            }
          },
          "How long a model stays without use: seconds, 10m, 1h; -1: until another one needs its "
          "memory [5m; a single model stays]"
      )
      ->type_name("TIME")
      ->group("Model");
  command
      .add_option(
          "--alias",
          options.aliases,
          "The model's name for clients [the folder's or repo's]; may be repeated"
      )
      ->type_name("NAME")
      ->group("Model");
  command
      .add_option(
          "--adapter",
          options.adapters,
          "An adapter that clients name as their model: NAME=DIR or NAME=FILE.gguf; may be repeated"
      )
      ->type_name("NAME=DIR")
      ->group("Model");
  command
      .add_option(
          "--adapter-dir", options.adapter_dir, "A folder whose adapters clients may load by name"
      )
      ->type_name("DIR")
      ->group("Model");
  command.add_flag("--allow-pull", options.allows_pull, "Clients may fetch models from the hub")
      ->group("Model");
  command
      .add_flag(
          "--any-model",
          options.takes_any_name,
          "Answer requests for unknown names with the first model"
      )
      ->group("Model");
}

}  // namespace saker::cli
