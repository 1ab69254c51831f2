// SPDX-License-Identifier: Apache-2.0
#include "saker/load/sources/open_texts.h"

#include "saker/base/error.h"
#include "saker/base/json/json_numbers.h"
#include "saker/load/files/model_dir.h"
#include "saker/load/gguf/gguf_model.h"
#include "saker/load/importers/lazy_tensor.h"

#include <functional>
#include <map>
#include <string>
#include <system_error>
#include <utility>

namespace saker::load {

text::ModelTexts open_texts(const std::filesystem::path& model) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(model, ignored)) {
    return {open_model_dir(model).path};
  }
  return texts_of(gguf::open_gguf_texts(model), model);
}

text::ModelTexts open_model_texts(const std::filesystem::path& model) {
  text::ModelTexts texts = open_texts(model);
  require(
      texts.has("config.json"),
      ErrorCode::kNotFound,
      "{}: no model folder, config.json is missing",
      model.string()
  );
  return texts;
}

text::ModelTexts texts_of(
    const importers::ImportedModel& read, const std::filesystem::path& model
) {
  std::map<std::string, text::ModelTexts::Text, std::less<>> texts;
  texts.emplace("config.json", write_json(read.config));
  for (const auto& [name, text] : read.files) {
    texts.emplace(name, text);
  }
  return {model, std::move(texts)};
}

}  // namespace saker::load
