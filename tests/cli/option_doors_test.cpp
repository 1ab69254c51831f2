// SPDX-License-Identifier: Apache-2.0
// Every option of the table is a flag of its commands and a setting of chats.
#include "saker/cli/chat/set_command.h"
#include "saker/cli/requests/modelfile_options.h"
#include "saker/cli/usage/program.h"
#include "saker/engine/options/request_option.h"

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace saker::cli {
namespace {

using ::testing::Contains;
using ::testing::Not;

std::string flag_of(std::string_view name) {
  std::string flag = "--" + std::string(name);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

void expect_flags(const CLI::App& command, bool engine::Doors::* door) {
  for (const engine::RequestOption& option : engine::request_options()) {
    const CLI::Option* flag = command.get_option_no_throw(flag_of(option.name));
    if (!(option.doors.*door)) {
      EXPECT_EQ(flag, nullptr) << option.name;
      continue;
    }
    ASSERT_NE(flag, nullptr) << option.name;
    EXPECT_EQ(flag->get_lnames().front(), flag_of(option.name).substr(2));
    EXPECT_EQ(flag->get_group(), option.group);
    EXPECT_EQ(flag->get_description(), engine::help_with_default(option));
    for (const std::string_view other : option.other_names()) {
      EXPECT_EQ(command.get_option_no_throw(flag_of(other)), flag) << other;
    }
  }
}

TEST(OptionDoors, CommandsHaveTheFlags) {
  CLI::App app;
  Action action;
  add_commands(app, action);
  expect_flags(*app.get_subcommand("run"), &engine::Doors::run);
  expect_flags(*app.get_subcommand("generate"), &engine::Doors::generate);
}

TEST(OptionDoors, ChatsHaveTheSettings) {
  const auto names = setting_names();
  for (const engine::RequestOption& option : engine::request_options()) {
    EXPECT_EQ(is_option_name(option.name), option.doors.setting) << option.name;
    for (const std::string_view other : option.other_names()) {
      EXPECT_EQ(option_name(other), option.name);
    }
    if (option.doors.setting) {
      EXPECT_THAT(names, Contains(std::string(option.name)));
    } else {
      EXPECT_THAT(names, Not(Contains(std::string(option.name))));
    }
  }
}

}  // namespace
}  // namespace saker::cli
