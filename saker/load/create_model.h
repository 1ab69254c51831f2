// SPDX-License-Identifier: Apache-2.0
#pragma once

// A named model from a Modelfile. Weights that stay as they are are linked where the file system
// can do that, and copied else: the model is there when the original has gone.

#include "saker/load/convert/convert_model.h"
#include "saker/load/importers/modelfile.h"
#include "saker/load/named_models.h"

#include <filesystem>
#include <string>
#include <vector>

namespace saker::load {

struct CreatePlan {
  std::string name;  // As parse_stored_name gives it.
  Modelfile file;
  std::filesystem::path beside;   // The Modelfile's folder.
  std::filesystem::path adapter;  // Empty: that of the model which FROM names, if any.
  ConvertOptions convert;         // Without the file's DRAFT.
  Json options = Json::object();  // The file's parameters, as request options.
};

struct CreateReport {
  std::filesystem::path path;
  std::vector<std::string> warnings;
};

// Throws as find_named and convert_model do; kUnsupported for a TEMPLATE in another language than
// Jinja where the model has none of its own, kCorruptData for one that can't be read.
CreateReport create_model(const CreatePlan& plan);

}  // namespace saker::load
