// SPDX-License-Identifier: Apache-2.0
#pragma once

// A model's text files by their names in its folder: "tokenizer.json",
// "additional_chat_templates/tool_use.jinja". They may be files of a folder, files elsewhere, or
// texts in memory, for models whose file holds them in another form. Immutable; any thread may call
// any member.

#include "saker/base/json/json.h"

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
  // A text in memory, or the path of a file.
  using Text = std::variant<std::string, std::filesystem::path>;

  // The files of a folder, looked up on each call.
  // NOLINTNEXTLINE(google-explicit-constructor): a folder is what most callers have.
  ModelTexts(std::filesystem::path folder) : source_(std::move(folder)), is_folder_(true) {}

  // Only these texts; in messages `source` names the origin of those in memory.
  ModelTexts(std::filesystem::path source, std::map<std::string, Text, std::less<>> texts)
      : source_(std::move(source)), texts_(std::move(texts)) {}

  bool has(std::string_view name) const;  // True if the text is there.

  // All names "<folder>/<file><ending>", sorted.
  std::vector<std::string> names_in(std::string_view folder, std::string_view ending) const;

  // The text's name in messages, whether it exists or not: the file that people can mend.
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
