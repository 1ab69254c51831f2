// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which GGUF model of a repository is meant. Repositories hold one model in many quantizations,
// each a file or several parts (NAME-00001-of-00003.gguf). Paths come from outside: they are
// compared, never opened here. Any thread.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saker::hub {

struct GgufModel {
  std::string path;                // Of its file, or of its first part.
  std::vector<std::string> paths;  // Of all parts in order.
};

// The whole models among the paths, sorted by path. Parts without their siblings are left out, and
// so are files that help a model: projectors of images (mmproj), importance matrices.
std::vector<GgufModel> gguf_models(std::span<const std::string> paths);

// What people call it: how its name ends ("Q4_K_M", "UD-Q4_K_XL"), else its path.
std::string gguf_label(const GgufModel& model, std::span<const GgufModel> all);

// `wanted` is a path, or the end of a file's name without ".gguf", in any case of letters: the
// quantization. Empty: the only model, else the one with the best known quantization that runs.
// Throws kNotFound where none fits and kInvalidArgument where several do, naming what there is;
// `what` begins the message.
const GgufModel& choose_gguf(
    std::span<const GgufModel> models, std::string_view wanted, std::string_view what
);

// Whether safetensors of a model or adapter, or their index, are among the paths of a folder.
bool has_safetensors(std::span<const std::string> paths);

}  // namespace saker::hub
