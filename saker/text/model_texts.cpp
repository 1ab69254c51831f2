// SPDX-License-Identifier: Apache-2.0
#include "saker/text/model_texts.h"

#include "saker/base/error.h"
#include "saker/base/mapped_file.h"
#include "saker/base/utf8.h"

#include <algorithm>
#include <system_error>

namespace saker::text {

namespace fs = std::filesystem;

bool ModelTexts::has(std::string_view name) const {
  const Text* text = find(name);
  if (text != nullptr && std::holds_alternative<std::string>(*text)) {
    return true;
  }
  std::error_code ignored;
  return (is_folder_ || text != nullptr) && fs::exists(file(name), ignored);
}

std::vector<std::string> ModelTexts::names_in(std::string_view folder, std::string_view ending)
    const {
  std::vector<std::string> names;
  const std::string start = fmt::format("{}/", folder);
  for (const auto& [name, text] : texts_) {
    if (name.starts_with(start) && name.ends_with(ending)) {
      names.push_back(name);
    }
  }
  std::error_code failed;
  if (is_folder_) {
    for (fs::directory_iterator at(source_ / folder, failed), end; !failed && at != end;
         at.increment(failed)) {
      std::error_code unknown;
      if (at->path().filename().native().ends_with(ending) && at->is_regular_file(unknown)) {
        names.push_back(start + at->path().filename().native());
      }
    }
  }
  std::ranges::sort(names);
  return names;
}

std::string ModelTexts::shown(std::string_view name) const {
  const Text* text = find(name);
  const bool is_file = is_folder_ || (text != nullptr && std::holds_alternative<fs::path>(*text));
  return is_file ? quote_path(file(name)) : fmt::format("{}: {}", quote_path(source_), name);
}

std::string ModelTexts::read(std::string_view name, std::size_t max_bytes) const {
  const Text* text = find(name);
  const auto* in_memory = text == nullptr ? nullptr : std::get_if<std::string>(text);
  if (in_memory == nullptr) {
    require(is_folder_ || text != nullptr, ErrorCode::kNotFound, "{}: is missing", shown(name));
    return read_file(file(name), max_bytes);
  }
  require(
      in_memory->size() <= max_bytes,
      ErrorCode::kCorruptData,
      "{}: {} bytes, expected at most {}",
      shown(name),
      in_memory->size(),
      max_bytes
  );
  return *in_memory;
}

Json ModelTexts::read_json(std::string_view name) const {
  return parse_json(read(name, kMaxJsonBytes), shown(name));
}

const ModelTexts::Text* ModelTexts::find(std::string_view name) const {
  const auto found = texts_.find(name);
  return found == texts_.end() ? nullptr : &found->second;
}

fs::path ModelTexts::file(std::string_view name) const {
  const Text* text = find(name);
  const auto* path = text == nullptr ? nullptr : std::get_if<fs::path>(text);
  return path == nullptr ? source_ / name : *path;
}

}  // namespace saker::text
