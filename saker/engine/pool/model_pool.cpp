// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/pool/model_pool.h"

#include "saker/base/error.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace saker::engine {
namespace {

using Clock = std::chrono::steady_clock;

double gigabytes(std::size_t bytes) {
  return static_cast<double>(bytes) / 1e9;
}

}  // namespace

class ModelPool::Impl : public std::enable_shared_from_this<Impl> {
 public:
  explicit Impl(std::size_t memory_bytes) : memory_bytes_(memory_bytes) {}

  void add(PoolModel model);
  std::shared_ptr<LanguageModel> use(std::string_view name);
  void unload(std::string_view name);
  std::vector<PoolEntry> models() const;
  std::optional<std::string> find(std::string_view name) const;
  // Unloads models whose time is over, until `close`.
  void watch();
  void close();

 private:
  struct Slot {
    PoolModel model;
    std::shared_ptr<LanguageModel> loaded = {};
    bool is_loading = false;
    int uses = 0;
    int loads = 0;                  // That have ended, well or not.
    std::exception_ptr error = {};  // Of the last one.
    Clock::time_point used = {};
  };

  // Models that leave; destroyed without the lock, which may take long.
  using Leaving = std::vector<std::shared_ptr<LanguageModel>>;
  using Lock = std::unique_lock<std::mutex>;

  // REQUIRES of all: mutex_ is held.
  Slot* slot_of(std::string_view name);
  Slot& known_slot(std::string_view name);
  std::size_t used_bytes() const;
  void make_room(const Slot& wanted, Leaving& leaving);
  Slot* least_recently_used();
  void load(Slot& slot, Lock& lock);
  std::shared_ptr<LanguageModel> hold(Slot& slot);

  const std::size_t memory_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Slot> slots_;  // Their addresses stay.
  bool closed_ = false;
};

void ModelPool::Impl::add(PoolModel model) {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names = model.aliases;
  names.push_back(model.name);
  for (const std::string& name : names) {
    require(
        slot_of(name) == nullptr,
        ErrorCode::kInvalidArgument,
        "{:?}: two models have this name",
        name
    );
  }
  slots_.push_back({.model = std::move(model)});
}

ModelPool::Impl::Slot* ModelPool::Impl::slot_of(std::string_view name) {
  const auto found = std::ranges::find_if(slots_, [&](const Slot& slot) {
    return slot.model.name == name ||
           std::ranges::find(slot.model.aliases, name) != slot.model.aliases.end();
  });
  return found == slots_.end() ? nullptr : &*found;
}

ModelPool::Impl::Slot& ModelPool::Impl::known_slot(std::string_view name) {
  Slot* slot = slot_of(name);
  std::string names;
  for (const Slot& each : slots_) {
    names += (names.empty() ? "" : ", ") + each.model.name;
  }
  require(slot != nullptr, ErrorCode::kNotFound, "no model {:?}; there are {}", name, names);
  return *slot;
}

std::shared_ptr<LanguageModel> ModelPool::Impl::use(std::string_view name) {
  Lock lock(mutex_);
  Slot& slot = known_slot(name);
  while (slot.loaded == nullptr) {
    if (!slot.is_loading) {
      load(slot, lock);
      continue;
    }
    const int loads = slot.loads;
    changed_.wait(lock, [&] { return slot.loads != loads; });
    if (slot.error != nullptr && slot.loaded == nullptr) {
      std::rethrow_exception(slot.error);
    }
  }
  return hold(slot);
}

// Loads without the lock. Others see that the model is loading, and that its memory is taken.
void ModelPool::Impl::load(Slot& slot, Lock& lock) {
  Leaving leaving;
  make_room(slot, leaving);
  slot.is_loading = true;
  lock.unlock();
  std::shared_ptr<LanguageModel> loaded;
  std::exception_ptr error;
  try {
    leaving.clear();
    loaded = slot.model.load();
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  slot.is_loading = false;
  slot.loaded = std::move(loaded);
  slot.error = error;
  slot.used = Clock::now();
  ++slot.loads;
  changed_.notify_all();
  if (error != nullptr) {
    std::rethrow_exception(error);
  }
}

std::size_t ModelPool::Impl::used_bytes() const {
  std::size_t bytes = 0;
  for (const Slot& slot : slots_) {
    bytes += slot.loaded != nullptr || slot.is_loading ? slot.model.bytes : 0;
  }
  return bytes;
}

ModelPool::Impl::Slot* ModelPool::Impl::least_recently_used() {
  Slot* oldest = nullptr;
  for (Slot& slot : slots_) {
    const bool may_leave = slot.loaded != nullptr && slot.uses == 0 && !slot.model.is_pinned;
    if (may_leave && (oldest == nullptr || slot.used < oldest->used)) {
      oldest = &slot;
    }
  }
  return oldest;
}

// Takes models away until `wanted` fits; takes none if it can't.
void ModelPool::Impl::make_room(const Slot& wanted, Leaving& leaving) {
  std::size_t stays = 0;
  std::string names;
  for (const Slot& slot : slots_) {
    const bool is_there = slot.loaded != nullptr || slot.is_loading;
    if (is_there && (slot.uses > 0 || slot.is_loading || slot.model.is_pinned)) {
      stays += slot.model.bytes;
      names += (names.empty() ? ", since these are in use: " : ", ") + slot.model.name;
    }
  }
  require(
      stays + wanted.model.bytes <= memory_bytes_,
      ErrorCode::kCapacity,
      "{:?} needs {:.1f} GB of memory, but {:.1f} of {:.1f} GB can be had{}",
      wanted.model.name,
      gigabytes(wanted.model.bytes),
      gigabytes(memory_bytes_ - std::min(memory_bytes_, stays)),
      gigabytes(memory_bytes_),
      names
  );
  while (used_bytes() + wanted.model.bytes > memory_bytes_) {
    Slot& oldest = *least_recently_used();
    spdlog::info("pool: {} makes room for {}", oldest.model.name, wanted.model.name);
    leaving.push_back(std::move(oldest.loaded));
    oldest.loaded = nullptr;
  }
}

std::shared_ptr<LanguageModel> ModelPool::Impl::hold(Slot& slot) {
  ++slot.uses;
  slot.used = Clock::now();
  const auto let_go = [self = shared_from_this(), &slot, kept = slot.loaded](LanguageModel*) {
    const std::lock_guard lock(self->mutex_);
    --slot.uses;
    slot.used = Clock::now();
    self->changed_.notify_all();
  };
  return {slot.loaded.get(), let_go};
}

void ModelPool::Impl::unload(std::string_view name) {
  std::shared_ptr<LanguageModel> leaving;  // Destroyed without the lock.
  const std::lock_guard lock(mutex_);
  Slot& slot = known_slot(name);
  require(
      slot.uses == 0 && !slot.is_loading,
      ErrorCode::kInvalidArgument,
      "{:?} is in use: it can be unloaded when its requests have ended",
      slot.model.name
  );
  leaving = std::exchange(slot.loaded, nullptr);
}

std::vector<PoolEntry> ModelPool::Impl::models() const {
  const std::lock_guard lock(mutex_);
  std::vector<PoolEntry> entries;
  for (const Slot& slot : slots_) {
    entries.push_back({
        .name = slot.model.name,
        .aliases = slot.model.aliases,
        .state = slot.is_loading          ? PoolState::kLoading
                 : slot.loaded != nullptr ? PoolState::kReady
                                          : PoolState::kUnloaded,
        .bytes = slot.model.bytes,
        .uses = slot.uses,
    });
  }
  return entries;
}

std::optional<std::string> ModelPool::Impl::find(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  for (const Slot& slot : slots_) {
    if (slot.model.name == name ||
        std::ranges::find(slot.model.aliases, name) != slot.model.aliases.end()) {
      return slot.model.name;
    }
  }
  return std::nullopt;
}

void ModelPool::Impl::watch() {
  Lock lock(mutex_);
  while (!closed_) {
    Leaving leaving;
    const auto now = Clock::now();
    auto next = now + std::chrono::hours(1);
    for (Slot& slot : slots_) {
      const bool has_end = slot.loaded != nullptr && slot.uses == 0 && !slot.model.is_pinned &&
                           slot.model.keep_alive.count() > 0;
      if (has_end && slot.used + slot.model.keep_alive <= now) {
        spdlog::info("pool: {} leaves, since nobody used it", slot.model.name);
        leaving.push_back(std::exchange(slot.loaded, nullptr));
      } else if (has_end) {
        next = std::min(next, slot.used + slot.model.keep_alive);
      }
    }
    if (!leaving.empty()) {
      lock.unlock();
      leaving.clear();
      lock.lock();
      continue;
    }
    changed_.wait_until(lock, next);
  }
}

void ModelPool::Impl::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

ModelPool::ModelPool(std::size_t memory_bytes) : impl_(std::make_shared<Impl>(memory_bytes)) {
  watcher_ = std::thread([impl = impl_] { impl->watch(); });
}

ModelPool::~ModelPool() {
  impl_->close();
  watcher_.join();
}

void ModelPool::add(PoolModel model) {
  impl_->add(std::move(model));
}

std::shared_ptr<LanguageModel> ModelPool::use(std::string_view name) {
  return impl_->use(name);
}

void ModelPool::unload(std::string_view name) {
  impl_->unload(name);
}

std::vector<PoolEntry> ModelPool::models() const {
  return impl_->models();
}

std::optional<std::string> ModelPool::find(std::string_view name) const {
  return impl_->find(name);
}

}  // namespace saker::engine
