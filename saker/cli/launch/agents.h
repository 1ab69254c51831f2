// SPDX-License-Identifier: Apache-2.0
#pragma once

// The settings by which each coding agent uses a server: command line, environment, files. They hold
// for one run; the user's own files stay as they are.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::cli {

struct LaunchServer {
  std::string address;  // "http://127.0.0.1:8080".
  std::string model;
  std::string key;           // "none" without one.
  std::int64_t context = 0;  // In tokens.
};

struct Agent {
  std::string_view name;
  std::string_view program;
  std::string_view install;  // The command that installs it.
};

struct AgentSettings {
  // Before the user's.
  std::vector<std::string> args = {};
  // An empty value unsets.
  std::vector<std::pair<std::string, std::string>> environment = {};
  // Content of files to write.
  std::vector<std::pair<std::filesystem::path, std::string>> files = {};
};

// Names of all agents.
std::vector<std::string> agent_names();
// REQUIRES: `name` is one of agent_names().
const Agent& find_agent(std::string_view name);
// `folder`: an empty one for this run, where the files are to be written.
AgentSettings agent_settings(
    const Agent& agent, const LaunchServer& server, const std::filesystem::path& folder
);

}  // namespace saker::cli
