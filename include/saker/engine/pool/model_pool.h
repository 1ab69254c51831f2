// SPDX-License-Identifier: Apache-2.0
#pragma once

// Several models in one process under one budget of memory. A model is loaded when it is first asked
// for, and unloaded when it was not used for a while or when another one needs its memory; never
// while somebody uses it. Any thread may call any member.
//
// One thread of the pool loads and unloads, a model at a time. Models that are waited for are served
// in the order of their first waiter. If the first one lacks memory, idle models leave, least
// recently used first; then busy ones take no new user until they may leave. So each waiter is
// served after at most one turn of each model before it.

#include "saker/engine/language_model.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace saker::engine {

// How long a model stays after its last use; none: until another one needs its memory.
using KeepAlive = std::optional<std::chrono::milliseconds>;

// A model that a pool can load.
struct PoolModel {
  std::string name;
  std::vector<std::string> aliases = {};  // Other names for it.
  // Called on the pool's thread. Its errors reach all who wait for it. It should end soon when a stop
  // is requested, which `close` does.
  std::function<std::unique_ptr<LanguageModel>(const std::stop_token& stop)> load;
  std::size_t bytes = 0;   // Its need of memory once loaded, see memory_needed.
  bool is_pinned = false;  // Leaves by `unload` alone.
  KeepAlive keep_alive = std::chrono::minutes(5);
};

enum class PoolState : std::uint8_t {
  kUnloaded,
  kWaiting,  // For memory, or for the load of another model.
  kLoading,
  kReady,
  kLeaving,  // Takes no new user; is unloaded when nobody uses it.
};

// A model of a pool, at one moment.
struct PoolEntry {
  std::string name;
  std::vector<std::string> aliases;
  PoolState state = PoolState::kUnloaded;
  std::size_t bytes = 0;
  int uses = 0;     // Holders of it.
  int waiting = 0;  // Who asked for it and has no answer yet.
  bool is_pinned = false;
  double busy_seconds = 0.0;  // See LanguageModel::busy_seconds; 0 if it is not loaded.
  std::string error;          // Why its last load failed; empty if it did not.
  // When it leaves if nobody uses it until then; none: not by time.
  std::optional<std::chrono::system_clock::time_point> expires;
};

class ModelPool {
 public:
  // Takes a model, or the reason why there is none. May be called on the pool's thread: must not
  // block.
  using Taker = std::function<void(std::shared_ptr<LanguageModel> model, std::exception_ptr error)>;

  // `memory_bytes`: for all loaded models together.
  explicit ModelPool(std::size_t memory_bytes);
  ModelPool(const ModelPool&) = delete;
  ModelPool& operator=(const ModelPool&) = delete;
  // As `close`. Models in use live until their last holder lets go.
  ~ModelPool();

  // Throws kInvalidArgument if a model has one of its names.
  void add(PoolModel model);

  // The model if it can be used at once, else null. `keep_alive` replaces the model's own from now
  // on. Hold the result while streams of it run. Throws kNotFound for an unknown name.
  std::shared_ptr<LanguageModel> use_now(
      std::string_view name, std::optional<KeepAlive> keep_alive = std::nullopt
  );
  // Calls `taker` once, when the model is ready or can't be had: kCapacity if it can't fit beside
  // pinned ones, what loading throws, kCancelled by `close`. A load that failed is not repeated for
  // a second. Returns a ticket. Throws kNotFound for an unknown name.
  std::uint64_t ask(
      std::string_view name, Taker taker, std::optional<KeepAlive> keep_alive = std::nullopt
  );
  // Drops the taker of a ticket without a call, unless it is being called. Unknown tickets are
  // ignored.
  void cancel(std::uint64_t ticket);
  // As `ask`, and waits. Not for takers.
  std::shared_ptr<LanguageModel> use(std::string_view name);

  // Unloads a model, pinned or not, when nobody uses it any more; who asks for it from now on waits
  // until it is loaded again. One that is not loaded stays so. Throws kNotFound for an unknown name.
  void unload(std::string_view name);

  // In the order of `add`.
  std::vector<PoolEntry> models() const;
  // The name of the model that has this name or alias.
  std::optional<std::string> find(std::string_view name) const;

  std::size_t memory_bytes() const;

  // Answers all who wait with kCancelled, ends the pool's thread and unloads what nobody uses.
  // Later calls of `ask` are answered so, too.
  void close();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;  // Holders of models share it.
  std::thread worker_;          // Loads and unloads.
};

// An estimate of the bytes that a model needs once loaded, from the sizes of its files and the
// prefix cache it is given. Throws kNotFound for a wrong path or name.
std::size_t memory_needed(const std::filesystem::path& model, const EngineOptions& options);

// Loads an engine for a pool. `options.on_load` is called, too.
std::function<std::unique_ptr<LanguageModel>(const std::stop_token& stop)> engine_loader(
    std::filesystem::path model, EngineOptions options
);

}  // namespace saker::engine
