// SPDX-License-Identifier: Apache-2.0
#pragma once

// Chooses a GGUF model of a repository. Repositories hold one model in many quantizations, each a
// file or several parts (NAME-00001-of-00003.gguf). Paths come from outside: they are compared,
// never opened here. Any thread.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saker::hub {

// A GGUF model of a repository.
struct GgufModel {
  std::string path;                // The path of its file, or of its first part.
  std::vector<std::string> paths;  // All its parts in order.
};

// The complete models among the paths, sorted by path. Parts with missing siblings are left out,
// and so are auxiliary files: image projectors (mmproj) and importance matrices.
std::vector<GgufModel> gguf_models(std::span<const std::string> paths);

// A short name for it: how its file's name ends ("Q4_K_M", "UD-Q4_K_XL"), else its path.
std::string gguf_label(const GgufModel& model, std::span<const GgufModel> all);

// `wanted` is a path, or the end of a file's name without ".gguf" (the quantization),
// case-insensitive. If it is empty: the only model, else the one with the most preferred
// quantization that we can run. Throws kNotFound if none fits and kInvalidArgument if several do,
// naming the candidates. `what` begins the message.
const GgufModel& choose_gguf(
    std::span<const GgufModel> models, std::string_view wanted, std::string_view what
);

// True if a folder's paths contain safetensors of a model or adapter, or their index.
bool has_safetensors(std::span<const std::string> paths);

}  // namespace saker::hub
