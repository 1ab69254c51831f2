// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/cpu/runtime/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

namespace saker::kernels {
namespace {

TEST(ThreadPool, RunsEachTileOnce) {
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.size(), threads);
    for (const int count : {0, 1, 2, 3, 17, 300}) {
      std::vector<std::atomic<int>> calls(static_cast<std::size_t>(count));
      pool.run(count, [&](int tile) { calls[static_cast<std::size_t>(tile)].fetch_add(1); });
      EXPECT_TRUE(std::all_of(calls.begin(), calls.end(), [](const auto& n) { return n == 1; }));
    }
  }
}

// Jobs follow each other so fast that late workers meet the next job; what a tile reads must be its
// own job's.
TEST(ThreadPool, LateWorkersNeverSeeAnotherJob) {
  ThreadPool pool(4);
  for (int job = 0; job < 5000; ++job) {
    const int count = 2 + job % 5;
    std::vector<int> seen(static_cast<std::size_t>(count), -1);
    pool.run(count, [&seen, job](int tile) { seen[static_cast<std::size_t>(tile)] = job; });
    ASSERT_EQ(std::count(seen.begin(), seen.end(), job), count);
  }
}

TEST(ThreadPool, SleepingWorkersWakeUp) {
  ThreadPool pool(2);
  for (int job = 0; job < 20; ++job) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int> sum = 0;
    pool.run(8, [&](int tile) { sum.fetch_add(tile); });
    ASSERT_EQ(sum, 28);
  }
}

TEST(ThreadPool, WorkersTakePart) {
  ThreadPool pool(2);
  // Both tiles wait for each other: one thread alone would never end.
  std::atomic<int> arrived = 0;
  pool.run(2, [&](int) {
    arrived.fetch_add(1);
    while (arrived != 2) {
      std::this_thread::yield();
    }
  });
  EXPECT_EQ(arrived, 2);
}

TEST(ThreadPool, ResizesBetweenJobs) {
  ThreadPool pool(1);
  for (const int threads : {3, 1, 2, 2, 4, 0}) {
    pool.resize(threads);
    EXPECT_EQ(pool.size(), std::max(1, threads));
    std::atomic<int> sum = 0;
    pool.run(10, [&](int tile) { sum.fetch_add(tile); });
    EXPECT_EQ(sum, 45);
  }
}

// Runs a thousand tiles, of which all from number `first` on fail.
void fail_from(ThreadPool& pool, int first) {
  std::atomic<int> calls = 0;
  const auto body = [&](int tile) {
    calls.fetch_add(1);
    if (tile >= first) {
      throw std::runtime_error("a tile");
    }
  };
  EXPECT_THROW(pool.run(1000, body), std::runtime_error);
  EXPECT_LT(calls, 1000);
}

TEST(ThreadPool, ThrowsWhatATileThrew) {
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    for (int job = 0; job < 200; ++job) {
      fail_from(pool, job % 7);
      std::atomic<int> sum = 0;
      pool.run(5, [&](int tile) { sum.fetch_add(tile); });
      ASSERT_EQ(sum, 10);
    }
  }
}

TEST(ThreadPool, CallersFromSeveralThreadsTakeTurns) {
  ThreadPool pool(3);
  std::atomic<std::int64_t> sum = 0;
  const auto add = [&](int tile) { sum.fetch_add(tile); };
  const auto call = [&] {
    for (int job = 0; job < 300; ++job) {
      pool.run(7, add);
    }
  };
  std::thread callers[] = {std::thread(call), std::thread(call), std::thread(call)};
  for (std::thread& caller : callers) {
    caller.join();
  }
  EXPECT_EQ(sum, 3 * 300 * 21);
}

TEST(ThreadPool, EachThreadHasThePoolThatItIsBoundTo) {
  ThreadPool& shared = thread_pool();
  ThreadPool one(1);
  ThreadPool three(3);
  const PoolBinding binding(one);
  {
    const PoolBinding inner(three);
    EXPECT_EQ(&thread_pool(), &three);
    std::thread([&] { EXPECT_EQ(&thread_pool(), &shared); }).join();
  }
  EXPECT_EQ(&thread_pool(), &one);
}

TEST(ThreadPool, WorkersHaveTheirOwnPool) {
  ThreadPool pool(3);
  const PoolBinding binding(pool);
  std::atomic<int> arrived = 0;
  pool.run(3, [&](int) {
    arrived.fetch_add(1);
    while (arrived != 3) {
      std::this_thread::yield();
    }
    EXPECT_EQ(&thread_pool(), &pool);
  });
}

}  // namespace
}  // namespace saker::kernels
