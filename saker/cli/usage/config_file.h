// SPDX-License-Identifier: Apache-2.0
#pragma once

// The user's configuration, a TOML file. It has defaults of options by name, for all commands or,
// in a table with a command's name, for that one.

#include <filesystem>
#include <string>
#include <vector>

namespace saker::cli {

struct ConfigEntry {
  std::string command = {};              // Empty: all commands with the option.
  std::string option = {};               // With '-', as in flags.
  std::vector<std::string> values = {};  // As typed; a switch is "true" or "false".
};

// `SAKER_CONFIG`, else saker/config.toml in `XDG_CONFIG_HOME` or ~/.config; empty if there is no
// file. Throws kInvalidArgument if `SAKER_CONFIG` names no file.
std::filesystem::path config_path();

// All entries, unordered. Throws kCorruptData, with line and column, if the file is not TOML.
// Throws it too for values that no option has, and for more than 1 MB.
std::vector<ConfigEntry> read_config(const std::filesystem::path& path);

}  // namespace saker::cli
