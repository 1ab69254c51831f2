// SPDX-License-Identifier: Apache-2.0
#include "saker/load/foreign/text_folder.h"

#include "saker/base/error.h"
#include "saker/base/json/json_numbers.h"
#include "saker/base/utf8.h"
#include "saker/load/foreign/derived_tensor.h"
#include "saker/load/gguf/gguf_model.h"

#include <fstream>
#include <string_view>
#include <system_error>

namespace saker::load {
namespace {

void write(const std::filesystem::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  require(!file.fail(), ErrorCode::kNotFound, "{}: cannot be written", quote_path(path));
}

}  // namespace

TextFolder::TextFolder(const std::filesystem::path& model) : path_(model) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(model, ignored)) {
    return;
  }
  const foreign::ForeignModel texts = gguf::open_gguf_texts(model);
  temporary_.emplace(std::filesystem::temp_directory_path() / "saker-model");
  path_ = temporary_->path();
  write(path_ / "config.json", write_json(texts.config));
  for (const auto& [name, text] : texts.files) {
    write(path_ / name, text);
  }
}

}  // namespace saker::load
