// SPDX-License-Identifier: Apache-2.0
#pragma once

// The place of a running model's module in a file with an importance matrix: its name, and the order
// of its columns. Pure; any thread.

#include "saker/base/json/json.h"
#include "saker/load/export/imatrix_file.h"
#include "saker/load/export/model_metadata.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load::gguf {

struct NamedImportance {
  std::string name;  // "blk.0.attn_q.weight"
  ImportanceEntry entry;
};

class ImportanceNames {
 public:
  // `config`: the model's. If GGUF files cannot describe such models, all names are the folder's.
  explicit ImportanceNames(const Json& config);

  // `module`: a path, see nn::Module. A module that GGUF files do not have keeps the folder's name,
  // "model.layers.0.per_layer_input_gate.weight".
  NamedImportance place(std::string_view module, ImportanceEntry entry) const;

  // The means of a file's entries by models::roster_name() of their modules, columns in the folder's
  // order: the inverse of place().
  std::map<std::string, std::vector<float>, std::less<>> modules(const ImportanceFile& file) const;

 private:
  std::optional<ModelMetadata> model_;
  std::vector<std::string> modules_;  // That GGUF files may have, by their roster's names.
};

}  // namespace saker::load::gguf
