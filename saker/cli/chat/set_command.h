// SPDX-License-Identifier: Apache-2.0
#pragma once

// The chat's commands on settings: /set, /think and /show.

#include "saker/cli/chat/commands.h"

#include <string>
#include <string_view>
#include <vector>

namespace saker::cli {

inline constexpr std::string_view kShowWords = "model settings system messages thoughts";

ChatCommand::Then set_setting(ChatShell& shell, std::string_view argument);
ChatCommand::Then set_thinking(ChatShell& shell, std::string_view argument);
ChatCommand::Then show(ChatShell& shell, std::string_view argument);

// Names that /set takes.
std::vector<std::string> setting_names();

}  // namespace saker::cli
