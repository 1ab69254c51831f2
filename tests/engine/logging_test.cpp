// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/logging.h"

#include "tests/support/expect_error.h"
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace saker {
namespace {

class LoggingTest : public ::testing::Test {
 protected:
  void TearDown() override {
    unsetenv("SAKER_LOG");
    log_to_stderr();
  }

  static std::string logged() {
    ::testing::internal::CaptureStderr();
    spdlog::trace("a {}", 1);
    spdlog::warn("b {}", 2);
    spdlog::error("c {}", 3);
    return ::testing::internal::GetCapturedStderr();
  }
};

TEST_F(LoggingTest, WarnsUnlessToldOtherwise) {
  unsetenv("SAKER_LOG");
  log_to_stderr();
  EXPECT_EQ(logged(), "warning: b 2\nerror: c 3\n");
  set_log_level("off");
  EXPECT_EQ(logged(), "");
  set_log_level("error");
  EXPECT_EQ(logged(), "error: c 3\n");
}

TEST_F(LoggingTest, TellsWhenWhereMoreIsAskedFor) {
  log_to_stderr();
  set_log_level("trace");
  const std::string text = logged();
  EXPECT_NE(text.find("trace: a 1\n"), std::string::npos) << text;
  EXPECT_EQ(text.at(2), ':') << text;
}

TEST_F(LoggingTest, FollowsTheEnvironment) {
  setenv("SAKER_LOG", "error", 1);
  log_to_stderr();
  EXPECT_EQ(logged(), "error: c 3\n");
  setenv("SAKER_LOG", "loud", 1);
  ::testing::internal::CaptureStderr();
  log_to_stderr();
  EXPECT_EQ(
      ::testing::internal::GetCapturedStderr(),
      "warning: SAKER_LOG: got 'loud', expected one of trace, debug, info, warn, error, off\n"
  );
}

TEST_F(LoggingTest, GivesNoOrdersToATerminal) {
  log_to_stderr();
  ::testing::internal::CaptureStderr();
  spdlog::warn("tensor '{}' {}", "\x1b]0;x\x07\u009b\u202e\nerror: no", std::string(70'000, 'n'));
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(
      text.starts_with("warning: tensor '\\x1b]0;x\\x07\\xc2\\x9b\\xe2\\x80\\xae error: no' nnn")
  ) << text;
  EXPECT_EQ(text.find('\n'), text.size() - 1) << text;
  EXPECT_LT(text.size(), 4200U);
}

TEST_F(LoggingTest, LinesOfThreadsDoNotMix) {
  log_to_stderr();
  ::testing::internal::CaptureStderr();
  {
    std::vector<std::jthread> threads;
    for (const char* word : {"aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb", "cccccccccccccccc"}) {
      threads.emplace_back([word] {
        for (int i = 0; i < 200; ++i) {
          spdlog::warn("{}", word);
        }
      });
    }
  }
  std::istringstream lines(::testing::internal::GetCapturedStderr());
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_TRUE(line.size() == 25 && line.find_first_not_of(line[9], 9) == std::string::npos)
        << line;
  }
  EXPECT_EQ(count, 600);
}

TEST_F(LoggingTest, RefusesOtherLevels) {
  testing::expect_error(ErrorCode::kInvalidArgument, {"'loud'", "trace"}, [] {
    set_log_level("loud");
  });
}

}  // namespace
}  // namespace saker
