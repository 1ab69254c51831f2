// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names that users of ollama, llama.cpp and mlx-lm type for something with another name here.

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace saker::cli {

// Synonyms of the argument that names a command's model, and of its output folder.
inline constexpr std::string_view kModelArgument = "MODEL";
inline constexpr std::string_view kOutputArgument = "DST";

// The name of `typed`, which is no option of `command`, in that command: an option, one of the
// arguments above, or empty.
std::string option_meant(const CLI::App& command, std::string_view typed);

// Advice about an option that has no counterpart; empty: none.
std::string_view advice_on_option(std::string_view typed);

// Advice about a command of another program: our counterpart, or a text.
struct CommandAdvice {
  std::string_view nearest;  // Empty: none.
  std::string_view text;     // Empty: the name is enough.
};

CommandAdvice advice_on_command(std::string_view typed);

}  // namespace saker::cli
