// SPDX-License-Identifier: Apache-2.0
#pragma once

// The models that ollama has fetched: its manifests name blobs, and a model's blob is a GGUF file.
// They lie in $OLLAMA_MODELS, else in ~/.ollama/models, else where ollama's service keeps them
// (/usr/share/ollama/.ollama/models). Nothing is written there.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load {

// Begins the names of ollama's models where ours are expected: "ollama:llama3.2:1b".
inline constexpr std::string_view kOllamaPrefix = "ollama:";

struct OllamaModel {
  std::string name;  // "llama3.2:1b", without registry.ollama.ai/library; ":latest" is left out.
  std::filesystem::path path;  // The blob.
  std::uintmax_t bytes = 0;
};

// Empty if there is no such folder.
std::filesystem::path ollama_dir();

// All models whose weights are one GGUF file that is there, sorted by name. Other manifests, and
// what is not a manifest, are left out. Reads a bounded number of folders and bytes.
std::vector<OllamaModel> ollama_models();

// The blob of a model by its name, without the prefix: "llama3.2", "llama3.2:1b", "user/model:tag",
// "hf.co/owner/repo:tag". Throws kNotFound if there is none, kInvalidArgument for a name that ollama
// has not, kCorruptData for a broken manifest, kUnsupported if its weights are no GGUF file.
std::filesystem::path find_ollama_model(std::string_view name);

}  // namespace saker::load
