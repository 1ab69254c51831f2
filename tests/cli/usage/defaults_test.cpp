// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/usage/defaults.h"

#include "saker/base/error.h"
#include "saker/cli/usage/program.h"

#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace saker::cli {
namespace {

using ::testing::ElementsAre;
using testing::expect_error;
using ::testing::IsEmpty;
using testing::TemporaryDir;

class Defaults : public ::testing::Test {
 protected:
  Defaults() { add_commands(app_, action_); }

  void TearDown() override { ::unsetenv("SAKER_TEMP"); }

  // What the command reads with this configuration.
  std::vector<std::string> arguments(std::vector<std::string> words, const std::string& toml)
      const {
    TypedLine line = read_line(app_, std::move(words));
    add_defaults(app_, line, read_config(dir_.write("config.toml", toml)), "config.toml");
    return line.arguments;
  }

  CLI::App app_;
  Action action_;
  TemporaryDir dir_;
};

TEST_F(Defaults, ComeFromTheFile) {
  EXPECT_THAT(arguments({"run"}, "temp = 0.7\n"), ElementsAre("--temp=0.7"));
  EXPECT_THAT(
      arguments({"run"}, "temp = 0.7\n[run]\ntemp = 1\n[generate]\ntemp = 2\n"),
      ElementsAre("--temp=1")
  );
  EXPECT_THAT(arguments({"run"}, "max_tokens = 5"), ElementsAre("--max-tokens=5"));
  EXPECT_THAT(arguments({"run"}, "think = false"), ElementsAre("--think=off"));
  EXPECT_THAT(arguments({"run"}, "stop = ['a', 'b']"), ElementsAre("--stop=a", "--stop=b"));
  EXPECT_THAT(arguments({"run"}, "ignore-eos = true"), ElementsAre("--ignore-eos"));
  EXPECT_THAT(arguments({"run"}, "ignore-eos = false"), IsEmpty());
  EXPECT_THAT(arguments({"list"}, "temp = 0.7"), IsEmpty());
}

TEST_F(Defaults, HaveTheSameOrderUnderAnyNameOfAnOption) {
  EXPECT_THAT(arguments({"run"}, "temperature = 0.7\n[run]\ntemp = 1\n"), ElementsAre("--temp=1"));
  EXPECT_THAT(
      arguments({"run"}, "temp = 0.7\n[run]\ntemperature = 1\n"), ElementsAre("--temperature=1")
  );
  ::setenv("SAKER_TEMP", "0.2", 1);
  EXPECT_THAT(arguments({"run"}, "temperature = 0.7"), ElementsAre("--temp=0.2"));
}

TEST_F(Defaults, AreBehindWhatIsTyped) {
  EXPECT_THAT(arguments({"run", "--temp", "1"}, "temp = 0.7"), ElementsAre("--temp", "1"));
  EXPECT_THAT(
      arguments({"run", "--temperature", "1"}, "temp = 0.7"), ElementsAre("--temperature", "1")
  );
  ::setenv("SAKER_TEMP", "0.2", 1);
  EXPECT_THAT(arguments({"run"}, "temp = 0.7"), ElementsAre("--temp=0.2"));
  EXPECT_THAT(arguments({"run", "--temp", "1"}, ""), ElementsAre("--temp", "1"));
}

TEST_F(Defaults, NameAModel) {
  EXPECT_THAT(arguments({"run"}, "model = 'm'"), ElementsAre("--model=m"));
  EXPECT_THAT(arguments({"run", "x"}, "model = 'm'"), ElementsAre("x"));
  EXPECT_THAT(
      arguments({"run", "a question"}, "model = 'm'"),
      ElementsAre("--model=m", "--prompt", "a question")
  );
  EXPECT_THAT(arguments({"pull", "x"}, "model = 'm'"), ElementsAre("x"));
}

// An option that goes only with another one, or not with one that was typed.
TEST_F(Defaults, AreLeftOutWhereTheyDoNotGo) {
  EXPECT_THAT(arguments({"generate", "-p", "a"}, "system = 's'"), ElementsAre("-p", "a"));
  EXPECT_THAT(
      arguments({"generate", "-p", "a", "--chat"}, "system = 's'"),
      ElementsAre("--system=s", "-p", "a", "--chat")
  );
}

TEST_F(Defaults, WhatIsWrongIsSaidWithItsPlace) {
  const auto fails = [&](const std::string& toml, const std::vector<std::string_view>& parts) {
    expect_error(ErrorCode::kInvalidArgument, parts, [&] { arguments({"run"}, toml); });
  };
  fails("tmep = 1", {"'tmep' is no option", "the nearest is temp"});
  fails("[runn]\ntemp = 1", {"'runn' is no command", "the nearest is run"});
  fails("prompt = 'x'", {"'prompt' is no option that has a default"});
  expect_error(ErrorCode::kCorruptData, {"config.toml':2:"}, [&] { arguments({"run"}, "\n= 3"); });
  expect_error(ErrorCode::kCorruptData, {"config.toml':1:", "expected a text"}, [&] {
    arguments({"run"}, "temp = 2026-01-01");
  });
}

}  // namespace
}  // namespace saker::cli
