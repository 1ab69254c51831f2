// SPDX-License-Identifier: Apache-2.0
#pragma once

// The MODEL argument and the options to run it, shared by all commands that load a model.

#include "saker/engine/engine.h"

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

namespace saker::cli {

class Progress;

struct ModelArgs {
  std::string model;    // A folder, hub repo id, or empty: the bundled demo model.
  std::string draft;    // As `model`, or "none"; empty: the model folder's own draft.
  bool drafts = false;  // The command drafts.
  engine::EngineOptions engine;
};

// Adds only the MODEL positional: for commands that read only tokenizer files.
void add_model_positional(CLI::App& command, std::string& model);
// Adds --threads, --device and --prefill-step.
void add_engine_args(CLI::App& command, ModelArgs& args);
// Adds MODEL and these.
void add_model_args(CLI::App& command, ModelArgs& args);

// Adds --fast-prefill: for commands that generate.
void add_fast_prefill(CLI::App& command, ModelArgs& args);
// For options that name a file or folder: refuses an empty name, usually from a variable that is
// not set.
const CLI::Validator& a_name();
// Adds --kv-bits: for commands without request fields.
void add_kv_bits(CLI::App& command, int& bits);
// Adds --adapter and --adapter-scale: for commands without request fields.
void add_adapter_args(CLI::App& command, std::string& adapter, double& scale);
// Adds --draft.
void add_draft_args(CLI::App& command, ModelArgs& args);
// Adds the options of the prefix cache.
void add_prefix_cache_args(CLI::App& command, ModelArgs& args);

// Bytes from "1048576", "512M", "2GB" or "off". Throws CLI::ValidationError.
std::size_t parse_size(const std::string& flag, std::string text);

// The options to load the model with its draft. Throws kNotFound for one that is not there.
engine::EngineOptions engine_options(const ModelArgs& args);

// Shows how far a load is, if it takes a while.
class LoadBar {
 public:
  LoadBar();
  LoadBar(const LoadBar&) = delete;
  LoadBar& operator=(const LoadBar&) = delete;
  ~LoadBar();

  void set(int done, int total);

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::unique_ptr<Progress> bar_;
};

// Loads the model, with a progress bar if that takes a while; prints its warnings on stderr.
// `adapter`: see EngineOptions.
std::unique_ptr<engine::Engine> load_engine(
    const ModelArgs& args, const std::filesystem::path& adapter = {}
);
// The adapter if it applies at full strength, else empty.
std::filesystem::path whole_adapter(const std::filesystem::path& adapter, double scale);

}  // namespace saker::cli
