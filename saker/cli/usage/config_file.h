// SPDX-License-Identifier: Apache-2.0
#pragma once

// The user's configuration, a TOML file: defaults of options by their names, for all commands or,
// in a table of its name, for one.

#include <filesystem>
#include <string>
#include <vector>

namespace saker::cli {

struct ConfigEntry {
  std::string command = {};              // Empty: all that have the option.
  std::string option = {};               // With '-', as flags have it.
  std::vector<std::string> values = {};  // As they would be typed; a switch is "true" or "false".
};

// `SAKER_CONFIG`, else saker/config.toml in `XDG_CONFIG_HOME` or ~/.config; empty: there is none.
// Throws kInvalidArgument where `SAKER_CONFIG` names no file.
std::filesystem::path config_path();

// Entries in no order. Throws kCorruptData with line and column where the file is no TOML, for
// values that no option has, and for more than 1 MB.
std::vector<ConfigEntry> read_config(const std::filesystem::path& path);

}  // namespace saker::cli
