// SPDX-License-Identifier: Apache-2.0
#pragma once

// Several models in one process under one budget of memory. A model is loaded when it is first asked
// for, and unloaded when it was not used for a while or when another one needs its memory; never
// while somebody uses it. Any thread may call any member.

#include "saker/engine/language_model.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace saker::engine {

// A model that a pool can load.
struct PoolModel {
  std::string name;
  std::vector<std::string> aliases = {};  // Other names for it.
  // Called on the thread that asks for the model. Its errors reach all who wait for it.
  std::function<std::unique_ptr<LanguageModel>()> load;
  std::size_t bytes = 0;   // Its need of memory once loaded, see memory_needed.
  bool is_pinned = false;  // Is never unloaded.
  // It is unloaded after this long without use; 0: only for want of memory.
  std::chrono::milliseconds keep_alive = std::chrono::minutes(5);
};

enum class PoolState : std::uint8_t { kUnloaded, kLoading, kReady };

// A model of a pool, at one moment.
struct PoolEntry {
  std::string name;
  std::vector<std::string> aliases;
  PoolState state = PoolState::kUnloaded;
  std::size_t bytes = 0;
  int uses = 0;  // Holders of it.
};

class ModelPool {
 public:
  // `memory_bytes`: for all loaded models together.
  explicit ModelPool(std::size_t memory_bytes);
  ModelPool(const ModelPool&) = delete;
  ModelPool& operator=(const ModelPool&) = delete;
  // Models in use live until their last holder lets go.
  ~ModelPool();

  // Throws kInvalidArgument if a model has one of its names.
  void add(PoolModel model);

  // Loads the model if necessary, and waits for it; others that ask for it meanwhile wait for the
  // same load. Hold the result while streams of it run. Throws kNotFound for an unknown name,
  // kCapacity if it needs more memory than models in use leave, and what loading throws.
  std::shared_ptr<LanguageModel> use(std::string_view name);

  // Unloads a model; one that is not loaded stays so. Throws kNotFound for an unknown name,
  // kInvalidArgument for a model that is in use or loading.
  void unload(std::string_view name);

  // In the order of `add`.
  std::vector<PoolEntry> models() const;
  // The name of the model that has this name or alias.
  std::optional<std::string> find(std::string_view name) const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;  // Holders of models share it.
  std::thread watcher_;         // Unloads what nobody uses.
};

// An estimate of the bytes that a model needs once loaded, from the sizes of its files and the
// prefix cache it is given. Throws kNotFound for a wrong path or name.
std::size_t memory_needed(const std::filesystem::path& model, const EngineOptions& options);

// Loads an engine for a pool.
std::function<std::unique_ptr<LanguageModel>()> engine_loader(
    std::filesystem::path model, EngineOptions options
);

}  // namespace saker::engine
