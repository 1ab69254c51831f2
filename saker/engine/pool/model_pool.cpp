// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/pool/model_pool.h"

#include "saker/base/error.h"
#include "saker/engine/pool/model_slot.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

namespace saker::engine {
namespace {

using Clock = ModelSlot::Clock;

// A load that failed is not repeated for this long.
constexpr std::chrono::seconds kPause{1};

double gigabytes(std::size_t bytes) {
  return static_cast<double>(bytes) / 1e9;
}

void answer(
    const ModelPool::Taker& taker, std::shared_ptr<LanguageModel> model, std::exception_ptr error
) {
  try {
    taker(std::move(model), std::move(error));
  } catch (const std::exception& failed) {
    spdlog::error("pool: {}", failed.what());
  }
}

}  // namespace

class ModelPool::Impl : public std::enable_shared_from_this<Impl> {
 public:
  explicit Impl(std::size_t memory_bytes) : memory_bytes_(memory_bytes) {}

  void add(PoolModel model);
  std::shared_ptr<LanguageModel> use_now(
      std::string_view name, const std::optional<KeepAlive>& keep_alive
  );
  std::uint64_t ask(std::string_view name, Taker taker, std::optional<KeepAlive> keep_alive);
  void cancel(std::uint64_t ticket);
  void unload(std::string_view name);
  std::vector<PoolEntry> models() const;
  std::optional<std::string> find(std::string_view name) const;

  std::size_t memory_bytes() const { return memory_bytes_; }

  // Loads and unloads until `close`.
  void work();
  void close();
  // After `work` has ended.
  void unload_idle();

 private:
  // Models that leave; destroyed without the lock, which may take long.
  using Leaving = std::vector<std::shared_ptr<LanguageModel>>;
  using Lock = std::unique_lock<std::mutex>;
  using Waiters = std::list<PoolWaiter>;

  // REQUIRES of all: mutex_ is held, and is held again after them.
  ModelSlot* slot_of(std::string_view name);
  ModelSlot& known_slot(std::string_view name);
  std::shared_ptr<LanguageModel> hold(ModelSlot& slot, const std::optional<KeepAlive>& keep_alive);
  void take_leaving(Lock& lock, Clock::time_point& next);
  bool serve_first(Lock& lock);
  void deliver(ModelSlot& slot, Lock& lock);
  void fail(ModelSlot& slot, const std::exception_ptr& error, Lock& lock);
  void load(ModelSlot& slot, Lock& lock);
  void require_room(const ModelSlot& wanted) const;
  bool make_room(const ModelSlot& wanted);
  std::size_t used_bytes() const;

  const std::size_t memory_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ModelSlot> slots_;   // Their addresses stay.
  std::deque<ModelSlot*> queue_;  // Those with waiters, by the first one's time.
  std::uint64_t last_ticket_ = 0;
  bool closed_ = false;
  std::stop_source stop_;
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
  const KeepAlive keep_alive = model.keep_alive;
  slots_.push_back({.model = std::move(model), .keep_alive = keep_alive});
}

ModelSlot* ModelPool::Impl::slot_of(std::string_view name) {
  const auto found =
      std::ranges::find_if(slots_, [&](const ModelSlot& slot) { return slot.has_name(name); });
  return found == slots_.end() ? nullptr : &*found;
}

ModelSlot& ModelPool::Impl::known_slot(std::string_view name) {
  ModelSlot* slot = slot_of(name);
  std::string names;
  for (const ModelSlot& each : slots_) {
    names += (names.empty() ? "" : ", ") + each.model.name;
  }
  require(slot != nullptr, ErrorCode::kNotFound, "no model {:?}; there are {}", name, names);
  return *slot;
}

std::shared_ptr<LanguageModel> ModelPool::Impl::use_now(
    std::string_view name, const std::optional<KeepAlive>& keep_alive
) {
  const std::lock_guard lock(mutex_);
  ModelSlot& slot = known_slot(name);
  return slot.takes_users() && !closed_ ? hold(slot, keep_alive) : nullptr;
}

std::uint64_t ModelPool::Impl::ask(
    std::string_view name, Taker taker, std::optional<KeepAlive> keep_alive
) {
  Lock lock(mutex_);
  ModelSlot& slot = known_slot(name);
  const std::uint64_t ticket = ++last_ticket_;
  if (closed_) {
    lock.unlock();
    answer(taker, nullptr, std::make_exception_ptr(Error(ErrorCode::kCancelled, "the pool ends")));
    return ticket;
  }
  if (slot.takes_users()) {
    std::shared_ptr<LanguageModel> model = hold(slot, keep_alive);
    lock.unlock();
    answer(taker, std::move(model), nullptr);
    return ticket;
  }
  slot.waiters.push_back({ticket, std::move(taker), keep_alive});
  if (std::ranges::find(queue_, &slot) == queue_.end()) {
    queue_.push_back(&slot);
  }
  changed_.notify_all();
  return ticket;
}

void ModelPool::Impl::cancel(std::uint64_t ticket) {
  Waiters dropped;  // Destroyed without the lock.
  const std::lock_guard lock(mutex_);
  for (ModelSlot& slot : slots_) {
    const auto found = std::ranges::find_if(slot.waiters, [&](const PoolWaiter& one) {
      return one.ticket == ticket;
    });
    if (found != slot.waiters.end()) {
      dropped.splice(dropped.end(), slot.waiters, found);
      changed_.notify_all();
    }
  }
}

std::shared_ptr<LanguageModel> ModelPool::Impl::hold(
    ModelSlot& slot, const std::optional<KeepAlive>& keep_alive
) {
  ++slot.uses;
  slot.used = Clock::now();
  slot.keep_alive = keep_alive.value_or(slot.keep_alive);
  // While it has users it stays, and the slot lives as long as this pool's holders.
  const auto let_go = [self = shared_from_this(), &slot](LanguageModel*) {
    const std::lock_guard lock(self->mutex_);
    --slot.uses;
    slot.used = Clock::now();
    self->changed_.notify_all();
  };
  return {slot.loaded.get(), let_go};
}

void ModelPool::Impl::unload(std::string_view name) {
  const std::lock_guard lock(mutex_);
  ModelSlot& slot = known_slot(name);
  slot.is_unloaded = slot.is_there();
  changed_.notify_all();
}

void ModelPool::Impl::work() {
  Lock lock(mutex_);
  while (!closed_) {
    auto next = Clock::now() + std::chrono::hours(1);
    take_leaving(lock, next);
    if (!closed_ && !serve_first(lock)) {
      changed_.wait_until(lock, next);
    }
  }
}

// Unloads idle models whose time is over or that have to leave; `next` is when the next one's is.
void ModelPool::Impl::take_leaving(Lock& lock, Clock::time_point& next) {
  Leaving leaving;
  for (ModelSlot& slot : slots_) {
    if (slot.loaded == nullptr || slot.uses > 0) {
      continue;
    }
    const auto expires = slot.expires();
    if (slot.is_leaving || slot.is_unloaded || (expires && *expires <= Clock::now())) {
      spdlog::info("pool: {} is unloaded", slot.model.name);
      leaving.push_back(std::exchange(slot.loaded, nullptr));
      slot.is_leaving = false;
      slot.is_unloaded = false;
    } else if (expires) {
      next = std::min(next, *expires);
    }
  }
  if (!leaving.empty()) {
    lock.unlock();
    leaving.clear();
    lock.lock();
  }
}

// A step towards the model that has waited longest. False if there is nothing to do but wait.
bool ModelPool::Impl::serve_first(Lock& lock) {
  for (ModelSlot& slot : slots_) {
    slot.is_leaving = false;  // Decided anew.
  }
  std::erase_if(queue_, [](const ModelSlot* slot) { return slot->waiters.empty(); });
  if (queue_.empty()) {
    return false;
  }
  ModelSlot& slot = *queue_.front();
  if (slot.loaded != nullptr) {
    if (slot.is_unloaded) {
      return false;  // Its users have to end first.
    }
    deliver(slot, lock);
    return true;
  }
  if (slot.error != nullptr && Clock::now() < slot.failed + kPause) {
    fail(slot, slot.error, lock);
    return true;
  }
  try {
    require_room(slot);
  } catch (const Error&) {
    fail(slot, std::current_exception(), lock);
    return true;
  }
  if (!make_room(slot)) {
    return std::ranges::any_of(slots_, [](const ModelSlot& one) {
      return one.is_leaving && one.uses == 0;
    });
  }
  load(slot, lock);
  return true;
}

void ModelPool::Impl::deliver(ModelSlot& slot, Lock& lock) {
  std::erase(queue_, &slot);
  Waiters waiters = std::exchange(slot.waiters, {});
  std::vector<std::shared_ptr<LanguageModel>> held;
  for (const PoolWaiter& waiter : waiters) {
    held.push_back(hold(slot, waiter.keep_alive));
  }
  lock.unlock();
  for (std::size_t i = 0; !waiters.empty(); ++i) {
    answer(waiters.front().taker, std::move(held[i]), nullptr);
    waiters.pop_front();
  }
  lock.lock();
}

void ModelPool::Impl::fail(ModelSlot& slot, const std::exception_ptr& error, Lock& lock) {
  std::erase(queue_, &slot);
  Waiters waiters = std::exchange(slot.waiters, {});
  lock.unlock();
  for (; !waiters.empty(); waiters.pop_front()) {
    answer(waiters.front().taker, nullptr, error);
  }
  lock.lock();
}

// Loads without the lock. Others see that the model is loading, and that its memory is taken.
void ModelPool::Impl::load(ModelSlot& slot, Lock& lock) {
  slot.is_loading = true;
  lock.unlock();
  std::shared_ptr<LanguageModel> loaded;
  std::exception_ptr error;
  try {
    loaded = slot.model.load(stop_.get_token());
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  slot.is_loading = false;
  slot.loaded = std::move(loaded);
  slot.keep_alive = slot.model.keep_alive;
  slot.error = error;
  slot.used = Clock::now();
  if (error != nullptr) {
    slot.is_unloaded = false;
    slot.failed = slot.used;
    spdlog::warn("pool: {} can't be loaded: {}", slot.model.name, entry_of(slot).error);
    fail(slot, error, lock);
    return;
  }
  spdlog::info("pool: {} is loaded", slot.model.name);
  deliver(slot, lock);  // Also if it has to leave again: they came before.
}

std::size_t ModelPool::Impl::used_bytes() const {
  std::size_t bytes = 0;
  for (const ModelSlot& slot : slots_) {
    bytes += slot.is_there() ? slot.model.bytes : 0;
  }
  return bytes;
}

// Throws unless the model fits once all that may leave have left.
void ModelPool::Impl::require_room(const ModelSlot& wanted) const {
  std::size_t stays = 0;
  std::string names;
  for (const ModelSlot& slot : slots_) {
    if (slot.is_there() && slot.model.is_pinned && !slot.is_unloaded) {
      stays += slot.model.bytes;
      names += (names.empty() ? ", since these stay: " : ", ") + slot.model.name;
    }
  }
  require(
      wanted.model.bytes <= memory_bytes_ - std::min(memory_bytes_, stays),
      ErrorCode::kCapacity,
      "{:?} needs {:.1f} GB of memory, but {:.1f} of {:.1f} GB can be had{}",
      wanted.model.name,
      gigabytes(wanted.model.bytes),
      gigabytes(memory_bytes_ - std::min(memory_bytes_, stays)),
      gigabytes(memory_bytes_),
      names
  );
}

// True if the model fits. Else chooses who has to leave: idle ones first, then the least recently
// used.
bool ModelPool::Impl::make_room(const ModelSlot& wanted) {
  std::size_t used = used_bytes();
  if (used + wanted.model.bytes <= memory_bytes_) {
    return true;
  }
  std::vector<ModelSlot*> candidates;
  for (ModelSlot& slot : slots_) {
    if (slot.loaded != nullptr && (!slot.model.is_pinned || slot.is_unloaded)) {
      candidates.push_back(&slot);
    }
  }
  std::ranges::sort(candidates, {}, [](const ModelSlot* slot) {
    return std::pair(slot->uses > 0, slot->used);
  });
  for (ModelSlot* slot : candidates) {
    if (used + wanted.model.bytes <= memory_bytes_) {
      break;
    }
    slot->is_leaving = true;
    used -= slot->model.bytes;
  }
  return false;
}

std::vector<PoolEntry> ModelPool::Impl::models() const {
  const std::lock_guard lock(mutex_);
  std::vector<PoolEntry> entries;
  for (const ModelSlot& slot : slots_) {
    entries.push_back(entry_of(slot));
  }
  return entries;
}

std::optional<std::string> ModelPool::Impl::find(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  for (const ModelSlot& slot : slots_) {
    if (slot.has_name(name)) {
      return slot.model.name;
    }
  }
  return std::nullopt;
}

void ModelPool::Impl::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  stop_.request_stop();
  changed_.notify_all();
}

void ModelPool::Impl::unload_idle() {
  Leaving leaving;
  Waiters waiters;
  {
    const std::lock_guard lock(mutex_);
    for (ModelSlot& slot : slots_) {
      waiters.splice(waiters.end(), slot.waiters);
      if (slot.uses == 0) {
        leaving.push_back(std::exchange(slot.loaded, nullptr));
      }
    }
    queue_.clear();
  }
  const auto error = std::make_exception_ptr(Error(ErrorCode::kCancelled, "the pool ends"));
  for (const PoolWaiter& waiter : waiters) {
    answer(waiter.taker, nullptr, error);
  }
}

ModelPool::ModelPool(std::size_t memory_bytes) : impl_(std::make_shared<Impl>(memory_bytes)) {
  worker_ = std::thread([impl = impl_] { impl->work(); });
}

ModelPool::~ModelPool() {
  close();
}

void ModelPool::close() {
  impl_->close();
  if (worker_.joinable()) {
    worker_.join();
  }
  impl_->unload_idle();
}

void ModelPool::add(PoolModel model) {
  impl_->add(std::move(model));
}

std::shared_ptr<LanguageModel> ModelPool::use_now(
    std::string_view name, std::optional<KeepAlive> keep_alive
) {
  return impl_->use_now(name, keep_alive);
}

std::uint64_t ModelPool::ask(
    std::string_view name, Taker taker, std::optional<KeepAlive> keep_alive
) {
  return impl_->ask(name, std::move(taker), keep_alive);
}

void ModelPool::cancel(std::uint64_t ticket) {
  impl_->cancel(ticket);
}

std::shared_ptr<LanguageModel> ModelPool::use(std::string_view name) {
  const auto promise = std::make_shared<std::promise<std::shared_ptr<LanguageModel>>>();
  auto future = promise->get_future();
  impl_->ask(
      name,
      [promise](std::shared_ptr<LanguageModel> model, const std::exception_ptr& error) {
        if (error != nullptr) {
          promise->set_exception(error);
        } else {
          promise->set_value(std::move(model));
        }
      },
      std::nullopt
  );
  return future.get();
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

std::size_t ModelPool::memory_bytes() const {
  return impl_->memory_bytes();
}

}  // namespace saker::engine
