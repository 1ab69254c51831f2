// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes a named model from a Modelfile. Weights that do not change are linked if the file system
// supports that, else copied: the model stays if the original is removed.

#include "saker/load/convert/convert_model.h"
#include "saker/load/files/named_models.h"
#include "saker/load/importers/modelfile.h"

#include <filesystem>
#include <string>
#include <vector>

namespace saker::load {

struct CreatePlan {
  std::string name;  // From parse_stored_name.
  Modelfile file;
  std::filesystem::path beside;  // The Modelfile's folder.
  // A folder or a GGUF file. Empty: the adapter of the model in FROM, if any.
  std::filesystem::path adapter;
  ConvertOptions convert;         // Without the file's DRAFT.
  Json options = Json::object();  // The file's parameters, as request options.
};

struct CreateReport {
  std::filesystem::path path;
  std::vector<std::string> warnings;
};

// Throws as find_named and convert_model do. Throws kUnsupported for a TEMPLATE that is not Jinja
// if the model has none of its own. Throws kCorruptData for a template that can't be read.
CreateReport create_model(const CreatePlan& plan);

}  // namespace saker::load
