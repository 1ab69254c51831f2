// SPDX-License-Identifier: Apache-2.0
#pragma once

// The texts of a model by the names that they have in its folder: "tokenizer.json",
// "additional_chat_templates/tool_use.jinja". They are the files of a folder, files that lie
// elsewhere, or texts in memory, for models whose file holds them in another form. Immutable; all
// members may be called from any thread.

#include "saker/base/json.h"

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace saker::text {

class ModelTexts {
 public:
  // In memory, or a file.
  using Text = std::variant<std::string, std::filesystem::path>;

  // The files of a folder, looked for when they are asked for.
  // NOLINTNEXTLINE(google-explicit-constructor): a folder is what most callers have.
  ModelTexts(std::filesystem::path folder) : source_(std::move(folder)), is_folder_(true) {}

  // These alone; `source` names in messages what holds those in memory.
  ModelTexts(std::filesystem::path source, std::map<std::string, Text, std::less<>> texts)
      : source_(std::move(source)), texts_(std::move(texts)) {}

  bool has(std::string_view name) const;

  // Names "<folder>/<file><ending>", in order.
  std::vector<std::string> names_in(std::string_view folder, std::string_view ending) const;

  // How messages call it, whether it is there or not: the file that can be mended.
  std::string shown(std::string_view name) const;

  // Throws as read_file does.
  std::string read(std::string_view name, std::size_t max_bytes) const;
  // Throws as read_json_file does.
  Json read_json(std::string_view name) const;

 private:
  const Text* find(std::string_view name) const;
  std::filesystem::path file(std::string_view name) const;

  std::filesystem::path source_;
  bool is_folder_ = false;
  std::map<std::string, Text, std::less<>> texts_;
};

}  // namespace saker::text
