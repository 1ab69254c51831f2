// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/usage/config_file.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/cli/io/output.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace saker::cli {
namespace {

std::string dashed(std::string_view key) {
  std::string name(key);
  std::ranges::replace(name, '_', '-');
  return name;
}

constexpr std::uintmax_t kMaxBytes = std::uintmax_t{1} << 20;

class ConfigReader {
 public:
  explicit ConfigReader(const std::filesystem::path& path) : path_(path) {}

  std::vector<ConfigEntry> read() {
    std::error_code failed;
    require(
        std::filesystem::file_size(path_, failed) <= kMaxBytes || failed,
        ErrorCode::kCorruptData,
        "{}: larger than the {} bytes that a configuration may have",
        quote_path(path_),
        kMaxBytes
    );
    const std::string text = read_text(path_);
    try {
      const toml::table table = toml::parse(std::string_view(text));
      read_table(table, "");
    } catch (const toml::parse_error& error) {
      fail(error.source().begin, error.description());
    }
    return std::move(entries_);
  }

 private:
  [[noreturn]] void fail(const toml::source_position& at, std::string_view what) const {
    throw Error(
        ErrorCode::kCorruptData,
        fmt::format("{}:{}:{}: {}", quote_path(path_), at.line, at.column, what)
    );
  }

  void read_table(const toml::table& table, const std::string& command) {
    for (const auto& [key, node] : table) {
      if (const toml::table* below = node.as_table()) {
        if (!command.empty()) {
          fail(node.source().begin, "a table within a command's, expected options");
        }
        read_table(*below, std::string(key.str()));
        continue;
      }
      ConfigEntry entry{.command = command, .option = dashed(key.str())};
      if (const toml::array* list = node.as_array()) {
        for (const toml::node& item : *list) {
          entry.values.push_back(value_text(item));
        }
      } else {
        entry.values.push_back(value_text(node));
      }
      entries_.push_back(std::move(entry));
    }
  }

  std::string value_text(const toml::node& node) const {
    if (const auto text = node.value_exact<std::string>()) {
      return *text;
    }
    if (const auto flag = node.value_exact<bool>()) {
      return *flag ? "true" : "false";
    }
    if (const auto whole = node.value_exact<std::int64_t>()) {
      return fmt::to_string(*whole);
    }
    if (const auto number = node.value_exact<double>()) {
      return fmt::to_string(*number);
    }
    fail(node.source().begin, "expected a text, a number, true, false, or a list of them");
  }

  const std::filesystem::path& path_;
  std::vector<ConfigEntry> entries_;
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

std::filesystem::path config_path() {
  std::filesystem::path path;
  std::error_code failed;
  if (std::getenv("SAKER_CONFIG") != nullptr) {
    path = variable("SAKER_CONFIG");
    require(
        path.empty() || std::filesystem::is_regular_file(path, failed),
        ErrorCode::kInvalidArgument,
        "SAKER_CONFIG: {} is no file",
        quote_path(path)
    );
  } else if (const std::string home = variable("XDG_CONFIG_HOME"); !home.empty()) {
    path = std::filesystem::path(home) / "saker" / "config.toml";
  } else if (const std::string user = variable("HOME"); !user.empty()) {
    path = std::filesystem::path(user) / ".config" / "saker" / "config.toml";
  }
  return std::filesystem::is_regular_file(path, failed) ? path : std::filesystem::path();
}

std::vector<ConfigEntry> read_config(const std::filesystem::path& path) {
  return ConfigReader(path).read();
}

}  // namespace saker::cli
