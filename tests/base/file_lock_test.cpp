// SPDX-License-Identifier: Apache-2.0
#include "saker/base/file_lock.h"

#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace saker {
namespace {

using testing::expect_error;
using testing::TemporaryDir;

TEST(FileLock, OneHoldsItAtATime) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 50;
  const TemporaryDir dir;
  std::atomic<int> inside = 0;
  std::atomic<int> together = 0;
  int count = 0;
  const auto work = [&] {
    for (int round = 0; round < kRounds; ++round) {
      const FileLock lock(dir.path() / "lock");
      together += inside.fetch_add(1) > 0 ? 1 : 0;
      ++count;
      std::this_thread::yield();
      inside.fetch_sub(1);
    }
  };
  {
    std::vector<std::jthread> threads;
    threads.reserve(kThreads);
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back(work);
    }
  }
  EXPECT_EQ(together, 0);
  EXPECT_EQ(count, kThreads * kRounds);
}

TEST(FileLock, AnOpenFileIsHeldUntilItIsClosed) {
  const TemporaryDir dir;
  const std::string path = (dir.path() / "file").string();
  using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
  File first(std::fopen(path.c_str(), "ab"), std::fclose);
  const File second(std::fopen(path.c_str(), "ab"), std::fclose);
  EXPECT_TRUE(try_lock(fileno(first.get())));
  EXPECT_TRUE(try_lock(fileno(first.get())));
  EXPECT_FALSE(try_lock(fileno(second.get())));
  first.reset();
  EXPECT_TRUE(try_lock(fileno(second.get())));
}

TEST(FileLock, SaysWhatItWaitsFor) {
  const TemporaryDir dir;
  const auto said = std::make_shared<std::ostringstream>();
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "lock", std::make_shared<spdlog::sinks::ostream_sink_mt>(*said)
  ));
  auto held = std::make_unique<FileLock>(dir.path() / "lock");
  std::jthread waiting([&] { const FileLock lock(dir.path() / "lock"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  held.reset();
  waiting.join();
  spdlog::set_default_logger(before);
  EXPECT_NE(said->str().find("lock': another process holds this lock"), std::string::npos)
      << said->str();
}

TEST(FileLock, SaysWhichFileCannotBeMade) {
  const TemporaryDir dir;
  expect_error(ErrorCode::kNotFound, {"no/lock"}, [&] { FileLock(dir.path() / "no" / "lock"); });
}

}  // namespace
}  // namespace saker
