// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/options/model_args.h"

#include "saker/cli/io/progress.h"
#include "saker/cli/options/checks.h"
#include "saker/load/files/model_dir.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace saker::cli {
namespace {

constexpr int kMaxThreads = 1024;
constexpr int kMaxTokens = 1 << 20;
// Loads that are faster show no bar.
constexpr auto kQuietLoad = std::chrono::milliseconds(500);

}  // namespace

void add_model_positional(CLI::App& command, std::string& model) {
  command
      .add_option(
          "MODEL,-m,--model",
          model,
          "A folder, a GGUF file, a Hugging Face repo id, or a name of `saker list` [the bundled "
          "demo model]"
      )
      ->type_name("MODEL");
}

std::size_t parse_size(const std::string& flag, std::string text) {
  if (text == "off") {
    return 0;
  }
  const std::string given = text;
  const auto is_size = [&] {
    try {
      return CLI::AsSizeValue(false)(text).empty();
    } catch (const CLI::ValidationError&) {
      return false;  // Not a unit.
    }
  };
  std::int64_t bytes = -1;
  if (!is_size() || !CLI::detail::lexical_cast(text, bytes) || bytes < 0) {
    throw CLI::ValidationError(
        flag, "got " + given + ", expected bytes, a size such as 512M or 2G, or off"
    );
  }
  return static_cast<std::size_t>(bytes);
}

void add_model_args(CLI::App& command, ModelArgs& args) {
  add_model_positional(command, args.model);
  add_engine_args(command, args);
}

void add_engine_args(CLI::App& command, ModelArgs& args) {
  command.add_option("--threads", args.engine.threads, "Worker threads [all processors]")
      ->check(between(1, kMaxThreads))
      ->type_name("INT")
      ->group("Engine");
  command.add_option("--device", args.engine.device, "Device that runs the model [cpu]")
      ->check(one_of({"cpu", "gpu"}))
      ->type_name("cpu|gpu")
      ->group("Engine");
  command
      .add_option(
          "--prefill-step", args.engine.prefill_step, "Prompt tokens that run in one pass [512]"
      )
      ->check(between(1, kMaxTokens))
      ->type_name("INT")
      ->group("Engine");
}

void add_fast_prefill(CLI::App& command, ModelArgs& args) {
  command
      .add_flag(
          "--fast-prefill",
          args.engine.fast_prefill,
          "Run prompts sooner and less precisely, with activations of int8; answers' own tokens "
          "run as ever"
      )
      ->group("Engine");
}

void add_kv_bits(CLI::App& command, int& bits) {
  command
      .add_option(
          "--kv-bits",
          bits,
          "Bits of each element that the cache keeps of a token: 4, 8, 16, or 32 for float32 [16]"
      )
      ->check(one_of({"32", "16", "8", "4"}))
      ->type_name("4|8|16|32")
      ->group("Cache");
}

void add_adapter_args(CLI::App& command, std::string& adapter, double& scale) {
  command
      .add_option("--adapter", adapter, "Folder of an adapter (mlx-lm or PEFT) or its GGUF file")
      ->type_name("DIR|FILE")
      ->group("Adapter");
  command.add_option("--adapter-scale", scale, "Strength of the adapter; 0: the base model [1]")
      ->type_name("NUM")
      ->group("Adapter");
}

void add_draft_args(CLI::App& command, ModelArgs& args) {
  args.drafts = true;
  command
      .add_option(
          "--draft",
          args.draft,
          "A smaller model with the same tokenizer, or a DFlash draft, EAGLE-3 head or MTP head of "
          "the model, that drafts tokens: answers stay the same and come sooner; none [draft or "
          "drafter in the model's folder, its own MTP head]"
      )
      ->type_name("MODEL")
      ->group("Drafts");
}

void add_prefix_cache_args(CLI::App& command, ModelArgs& args) {
  command
      .add_option_function<std::string>(
          "--prefix-cache",
          [&args](const std::string& text) {
            args.engine.prefix_cache = parse_size("--prefix-cache", text);
          },
          "Memory for what prompts with the same beginning share: bytes, 512M, 2G; or off [an "
          "eighth of the machine's]"
      )
      ->type_name("SIZE|off")
      ->group("Cache");
  command
      .add_option_function<std::string>(
          "--cache-memory",
          [&args](const std::string& text) {
            args.engine.cache_memory = parse_size("--cache-memory", text);
          },
          "Memory for all cached tokens: of answers that run, and of prompts that share some, "
          "which "
          "give way first; or off: any [three quarters of the machine's]"
      )
      ->type_name("SIZE|off")
      ->group("Cache");
  command
      .add_option(
          "--prefix-cache-dir",
          args.engine.prefix_cache_dir,
          "A folder that keeps shared prompts after the program ends"
      )
      ->type_name("DIR")
      ->group("Cache");
  command
      .add_option_function<std::string>(
          "--prefix-cache-dir-size",
          [&args](const std::string& text) {
            args.engine.prefix_cache_dir_size = parse_size("--prefix-cache-dir-size", text);
          },
          "Bytes of that folder at most [8G]"
      )
      ->type_name("SIZE")
      ->group("Cache");
  command
      .add_option(
          "--prefix-cache-interval",
          args.engine.prefix_cache_interval,
          "Known tokens that a prompt may have to run again where layers keep a window [256]"
      )
      ->check(between(1, kMaxTokens))
      ->type_name("INT")
      ->group("Cache");
}

std::filesystem::path whole_adapter(const std::filesystem::path& adapter, double scale) {
  return scale == 1.0 ? adapter : std::filesystem::path();
}

engine::EngineOptions engine_options(const ModelArgs& args) {
  engine::EngineOptions options = args.engine;
  const std::filesystem::path model = load::resolve_model(args.model);
  options.mtp = args.drafts && args.draft != "none";
  if (args.drafts && args.draft.empty()) {
    options.draft = load::find_draft(model).value_or(std::filesystem::path());
    options.draft_is_optional = true;
  } else if (args.drafts && args.draft != "none") {
    options.draft = load::resolve_model(args.draft);
  }
  return options;
}

LoadBar::LoadBar() = default;

LoadBar::~LoadBar() = default;

void LoadBar::set(int done, int total) {
  if (bar_ == nullptr && std::chrono::steady_clock::now() - start_ > kQuietLoad) {
    bar_ = std::make_unique<Progress>(static_cast<std::uint64_t>(total), "loading");
  }
  if (bar_ != nullptr) {
    bar_->set(static_cast<std::uint64_t>(done));
  }
}

std::unique_ptr<engine::Engine> load_engine(
    const ModelArgs& args, const std::filesystem::path& adapter
) {
  engine::EngineOptions options = engine_options(args);
  std::optional<LoadBar> bar(std::in_place);
  options.adapter = adapter;
  options.on_load = [&](int done, int total) { bar->set(done, total); };
  auto engine = engine::Engine::load(args.model, options);
  bar.reset();
  for (const std::string& warning : engine->facts().warnings) {
    spdlog::warn("{}", warning);
  }
  return engine;
}

}  // namespace saker::cli
