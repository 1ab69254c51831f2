// SPDX-License-Identifier: Apache-2.0
#include "saker/base/thread_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace saker {
namespace {

TEST(ThreadQueue, FirstInFirstOut) {
  ThreadQueue<int> queue;
  EXPECT_FALSE(queue.try_pop());
  queue.push(1);
  queue.push(2);
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_EQ(queue.try_pop(), 2);
  EXPECT_FALSE(queue.try_pop());
}

TEST(ThreadQueue, ClosedQueuesGiveWhatIsLeft) {
  ThreadQueue<std::unique_ptr<int>> queue;
  EXPECT_TRUE(queue.push(std::make_unique<int>(5)));
  queue.close();
  EXPECT_FALSE(queue.push(std::make_unique<int>(6)));
  EXPECT_EQ(**queue.pop(), 5);
  EXPECT_FALSE(queue.pop());
}

TEST(ThreadQueue, TheLastValueIsTheLast) {
  ThreadQueue<int> queue;
  queue.push(1);
  queue.close_after(2);
  queue.close_after(3);
  EXPECT_FALSE(queue.push(4));
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_EQ(queue.pop(), 2);
  EXPECT_FALSE(queue.pop());
}

TEST(ThreadQueue, EveryValueComesOutOnce) {
  constexpr int kProducers = 4;
  constexpr int kConsumers = 3;
  constexpr int kValues = 5000;
  ThreadQueue<int> queue;
  std::vector<std::atomic<int>> seen(kProducers * kValues);
  std::vector<std::thread> consumers;
  consumers.reserve(kConsumers);
  for (int c = 0; c < kConsumers; ++c) {
    consumers.emplace_back([&] {
      while (const auto value = queue.pop()) {
        ++seen[static_cast<std::size_t>(*value)];
      }
    });
  }
  std::vector<std::thread> producers;
  producers.reserve(kProducers);
  for (int p = 0; p < kProducers; ++p) {
    producers.emplace_back([&queue, p] {
      for (int i = 0; i < kValues; ++i) {
        queue.push(p * kValues + i);
      }
    });
  }
  for (std::thread& producer : producers) {
    producer.join();
  }
  queue.close();
  for (std::thread& consumer : consumers) {
    consumer.join();
  }
  for (const std::atomic<int>& count : seen) {
    EXPECT_EQ(count, 1);
  }
}

TEST(ThreadQueue, ClosingWakesWhoWaits) {
  ThreadQueue<int> queue;
  std::thread waiting([&] { EXPECT_FALSE(queue.pop()); });
  queue.close();
  waiting.join();
}

}  // namespace
}  // namespace saker
