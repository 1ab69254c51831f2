// SPDX-License-Identifier: Apache-2.0
#pragma once

// Threads that share the tiles of one operation.
//
// `run` cuts an operation into tiles 0 .. count - 1. The caller and the workers claim tiles one by
// one, so a thread that lost its core delays the operation by one tile at most. `run` returns when
// all tiles are done; it never waits for a worker that has claimed none. Idle threads spin for a
// few microseconds, then sleep in the kernel, so other programs get the cores. Results must not
// depend on which thread runs a tile.
//
// Threading: `run` and `resize` may be called from any thread, one at a time (others wait). A tile
// must not call them.

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace saker::kernels {

class ThreadPool {
 public:
  // `threads` counts the caller, so 1 means no worker. The system may give fewer, see size().
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return size_.load(std::memory_order_relaxed); }

  void resize(int threads);

  // Calls body(tile) once for each tile in [0, count). After an exception no further tile begins;
  // the first exception is thrown again when all running tiles have ended.
  template <typename Body>
  void run(int count, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run_tiles(
        count,
        [](const void* context, int tile) {
          (*static_cast<Plain*>(const_cast<void*>(context)))(tile);
        },
        &body
    );
  }

 private:
  using TileFunction = void (*)(const void* context, int tile);

  void run_tiles(int count, TileFunction function, const void* context);
  void start_workers(int count);
  void stop_workers();
  void work();
  bool run_one_tile();
  void call(int tile);

  std::mutex run_mutex_;  // Held during run and resize.
  std::atomic<int> size_{1};
  std::vector<std::thread> workers_;

  // The job. Written while no tile is left to claim; read only by a thread that has claimed one of
  // its tiles.
  TileFunction function_ = nullptr;
  const void* context_ = nullptr;
  int count_ = 0;

  // The exception of the job's first failing tile, written by the thread that sets `failed_`.
  std::exception_ptr failure_;
  std::atomic<bool> failed_{false};

  // High half: the job's number; low half: tiles not yet claimed. A claim compares and swaps the
  // whole word, so a late thread cannot claim a tile of a job that it does not know.
  alignas(64) std::atomic<std::uint64_t> claims_{0};
  alignas(64) std::atomic<std::int32_t> done_{0};
  // Counts jobs; sleeping workers wait for its change.
  alignas(64) std::atomic<std::int32_t> signal_{0};
  std::atomic<bool> stopping_{false};
};

// Processors that this process may use, at least 1.
int available_processors();

// The pool that the calling thread's kernels use: the one of its `PoolBinding`; in a worker, the
// worker's own. Other threads share one pool, which starts with available_processors() threads at
// its first use.
ThreadPool& thread_pool();

// Makes `pool` the calling thread's until the binding ends. Bindings nest. REQUIRES: it ends on the
// same thread, before the pool.
class PoolBinding {
 public:
  explicit PoolBinding(ThreadPool& pool);
  ~PoolBinding();
  PoolBinding(const PoolBinding&) = delete;
  PoolBinding& operator=(const PoolBinding&) = delete;

 private:
  ThreadPool* outer_;
};

}  // namespace saker::kernels
