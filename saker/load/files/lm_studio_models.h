// SPDX-License-Identifier: Apache-2.0
#pragma once

// The models that LM Studio has fetched: OWNER/REPO/*.gguf, or OWNER/REPO as a model folder, in
// ~/.lmstudio/models or ~/.cache/lm-studio/models. Nothing is written there.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace saker::load {

struct LmStudioModel {
  std::string name;            // "OWNER/REPO/FILE.gguf", or "OWNER/REPO" of a folder.
  std::filesystem::path path;  // To load.
  std::uintmax_t bytes = 0;    // All its files.
};

// Empty if there is no such folder.
std::filesystem::path lm_studio_dir();

// Sorted by name. Looks at a bounded number of files.
std::vector<LmStudioModel> lm_studio_models();

}  // namespace saker::load
