// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/cpu/runtime/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#if defined(__linux__)
#include <sched.h>
#endif

namespace saker::kernels {
namespace {

// Null: the thread uses the shared pool.
thread_local ThreadPool* bound_pool = nullptr;

// Longer than the gap between two operations of a pass, shorter than a scheduler's tick.
constexpr std::chrono::microseconds kSpinTime{50};

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until ready() or until the time is over.
template <typename Ready>
bool spin_until(const Ready& ready) {
  const auto end = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < 32; ++i) {
      if (ready()) {
        return true;
      }
      pause_briefly();
    }
  } while (std::chrono::steady_clock::now() < end);
  return ready();
}

}  // namespace

int available_processors() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    return std::max(1, CPU_COUNT(&set));
  }
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

ThreadPool::ThreadPool(int threads) {
  start_workers(std::max(1, threads) - 1);
}

ThreadPool::~ThreadPool() {
  stop_workers();
}

void ThreadPool::resize(int threads) {
  const std::scoped_lock lock(run_mutex_);
  const int wanted = std::max(1, threads);
  if (wanted != size()) {
    stop_workers();
    start_workers(wanted - 1);
  }
}

void ThreadPool::run_tiles(int count, TileFunction function, const void* context) {
  if (count <= 0) {
    return;
  }
  const std::scoped_lock lock(run_mutex_);
  if (count == 1 || workers_.empty()) {
    for (int tile = 0; tile < count; ++tile) {
      function(context, tile);
    }
    return;
  }
  function_ = function;
  context_ = context;
  count_ = count;
  done_.store(0, std::memory_order_relaxed);
  const std::uint64_t job = (claims_.load(std::memory_order_relaxed) >> 32) + 1;
  claims_.store(job << 32 | static_cast<std::uint32_t>(count), std::memory_order_release);
  signal_.fetch_add(1, std::memory_order_release);
  signal_.notify_all();
  while (run_one_tile()) {
  }
  const auto all_done = [&] { return done_.load(std::memory_order_acquire) == count; };
  while (!spin_until(all_done)) {
    const std::int32_t seen = done_.load(std::memory_order_acquire);
    if (seen != count) {
      done_.wait(seen, std::memory_order_acquire);
    }
  }
  if (failed_.load(std::memory_order_relaxed)) {
    failed_.store(false, std::memory_order_relaxed);
    std::rethrow_exception(std::exchange(failure_, nullptr));
  }
}

bool ThreadPool::run_one_tile() {
  std::uint64_t claims = claims_.load(std::memory_order_acquire);
  do {
    if (static_cast<std::uint32_t>(claims) == 0) {
      return false;
    }
  } while (!claims_.compare_exchange_weak(
      claims, claims - 1, std::memory_order_acquire, std::memory_order_acquire
  ));
  const int count = count_;
  call(count - static_cast<int>(static_cast<std::uint32_t>(claims)));
  // After the last tile the caller may return and start another job. From here on only done_ may be
  // touched.
  if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == count) {
    done_.notify_one();
  }
  return true;
}

void ThreadPool::call(int tile) {
  if (failed_.load(std::memory_order_relaxed)) {
    return;
  }
  try {
    function_(context_, tile);
  } catch (...) {
    if (!failed_.exchange(true, std::memory_order_relaxed)) {
      failure_ = std::current_exception();
    }
  }
}

void ThreadPool::work() {
  const PoolBinding binding(*this);
  while (true) {
    // Read before the rest, so that the thread never sleeps through a later call.
    const std::int32_t seen = signal_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_acquire)) {
      return;
    }
    while (run_one_tile()) {
    }
    const auto called = [&] { return signal_.load(std::memory_order_acquire) != seen; };
    if (!spin_until(called)) {
      signal_.wait(seen, std::memory_order_acquire);
    }
  }
}

void ThreadPool::start_workers(int count) {
  try {
    workers_.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      workers_.emplace_back([this] { work(); });
    }
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // No more threads, or no memory for one: the existing ones share the work.
  }
  size_.store(static_cast<int>(workers_.size()) + 1, std::memory_order_relaxed);
}

void ThreadPool::stop_workers() {
  stopping_.store(true, std::memory_order_release);
  signal_.fetch_add(1, std::memory_order_release);
  signal_.notify_all();
  for (std::thread& worker : workers_) {
    worker.join();
  }
  workers_.clear();
  stopping_.store(false, std::memory_order_release);
}

ThreadPool& thread_pool() {
  if (bound_pool != nullptr) {
    return *bound_pool;
  }
  static ThreadPool shared(available_processors());
  return shared;
}

PoolBinding::PoolBinding(ThreadPool& pool) : outer_(std::exchange(bound_pool, &pool)) {}

PoolBinding::~PoolBinding() {
  bound_pool = outer_;
}

}  // namespace saker::kernels
