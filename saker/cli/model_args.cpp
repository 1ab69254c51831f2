// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/model_args.h"

#include "saker/cli/progress.h"
#include "saker/load/model_dir.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace saker::cli {
namespace {

constexpr int kMaxThreads = 1024;
// Loads that end sooner show no bar.
constexpr auto kQuietLoad = std::chrono::milliseconds(500);

}  // namespace

void add_model_positional(CLI::App& command, std::string& model) {
  command.add_option(
      "MODEL",
      model,
      "Model: a directory, or a Hugging Face repo id in the local cache [the bundled demo model]"
  );
}

void add_model_args(CLI::App& command, ModelArgs& args) {
  add_model_positional(command, args.model);
  command.add_option("--threads", args.engine.threads, "Worker threads [all processors]")
      ->check(CLI::Range(1, kMaxThreads))
      ->type_name("INT")
      ->group("Engine");
  command.add_option("--device", args.engine.device, "cpu or gpu [cpu]")
      ->check(CLI::IsMember({"cpu", "gpu"}))
      ->type_name("NAME")
      ->group("Engine");
  command.add_option("--prefill-step", args.engine.prefill_step, "Prompt tokens of one pass [512]")
      ->check(CLI::Range(1, 1 << 20))
      ->type_name("INT")
      ->group("Engine");
}

void add_kv_bits(CLI::App& command, int& bits) {
  command
      .add_option(
          "--kv-bits", bits, "Keep cached rows in 8 or 4 bits an element; 16: as they are [16]"
      )
      ->check(CLI::IsMember({16, 8, 4}))
      ->type_name("INT");
}

std::unique_ptr<engine::Engine> load_engine(const ModelArgs& args) {
  const auto start = std::chrono::steady_clock::now();
  std::optional<Progress> bar;
  engine::EngineOptions options = args.engine;
  options.on_load = [&](int done, int total) {
    if (!bar && std::chrono::steady_clock::now() - start > kQuietLoad) {
      bar.emplace(static_cast<std::uint64_t>(total), "loading");
    }
    if (bar) {
      bar->set(static_cast<std::uint64_t>(done));
    }
  };
  auto engine = engine::Engine::load(load::resolve_model(args.model), options);
  bar.reset();
  for (const std::string& warning : engine->facts().warnings) {
    spdlog::warn("{}", warning);
  }
  return engine;
}

}  // namespace saker::cli
