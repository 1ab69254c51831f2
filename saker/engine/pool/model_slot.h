// SPDX-License-Identifier: Apache-2.0
#pragma once

// A model of a pool with who uses it and who waits for it. The pool's mutex guards it.

#include "saker/engine/pool/model_pool.h"

#include <chrono>
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <optional>
#include <string_view>

namespace saker::engine {

struct PoolWaiter {
  std::uint64_t ticket = 0;
  ModelPool::Taker taker;
  std::optional<KeepAlive> keep_alive;
};

struct ModelSlot {
  using Clock = std::chrono::steady_clock;

  PoolModel model;
  KeepAlive keep_alive = {};  // The model's, or that of its last user who named one.
  std::shared_ptr<LanguageModel> loaded = {};
  std::list<PoolWaiter> waiters = {};
  int uses = 0;
  bool is_loading = false;
  bool is_leaving = false;        // For want of memory.
  bool is_unloaded = false;       // By request: it leaves when nobody uses it.
  std::exception_ptr error = {};  // Of the last load.
  Clock::time_point failed = {};  // When that was.
  Clock::time_point used = {};

  bool has_name(std::string_view name) const;

  bool takes_users() const { return loaded != nullptr && !is_leaving && !is_unloaded; }

  bool is_there() const { return loaded != nullptr || is_loading; }

  // When it leaves if nobody uses it until then.
  std::optional<Clock::time_point> expires() const;
};

// What others see of it.
PoolEntry entry_of(const ModelSlot& slot);

}  // namespace saker::engine
