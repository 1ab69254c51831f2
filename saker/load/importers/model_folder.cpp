// SPDX-License-Identifier: Apache-2.0
#include "saker/load/importers/model_folder.h"

#include "saker/load/files/model_dir.h"
#include "saker/load/importers/leftover_section.h"
#include "saker/load/importers/sentence_transformers.h"

#include <utility>

namespace saker::load::importers {

ModelFolder read_model_folder(const std::filesystem::path& dir) {
  Json config = read_json_file(config_of(open_model_dir(dir)));
  ModelTensors read = read_model_tensors(dir);
  check_complete(read, config);
  PlainConfig plain = without_leftover(std::move(config), read);
  if (!plain.warning.empty()) {
    read.warnings.push_back(std::move(plain.warning));
  }
  add_sentence_transformers(dir, plain.config, read);
  return {std::move(plain.config), std::move(read)};
}

}  // namespace saker::load::importers
