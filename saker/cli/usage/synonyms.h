// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names that users of ollama, llama.cpp and mlx-lm type for what has another name here.

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace saker::cli {

// A synonym of the argument that names a command's model, and of the folder that it writes.
inline constexpr std::string_view kModelArgument = "MODEL";
inline constexpr std::string_view kOutputArgument = "DST";

// What `typed`, which is no option of `command`, is called there: an option of it, one of the
// arguments above, or nothing.
std::string option_meant(const CLI::App& command, std::string_view typed);

// What to do instead of an option that has no counterpart; empty: nothing is known.
std::string_view advice_on_option(std::string_view typed);

// The command that does what the command of another program does, or what to say of it.
struct CommandAdvice {
  std::string_view nearest;  // Empty: none.
  std::string_view text;     // Empty: the name says all.
};

CommandAdvice advice_on_command(std::string_view typed);

}  // namespace saker::cli
