// SPDX-License-Identifier: Apache-2.0
#pragma once

// An adapter's folder as host tensors, whichever tool wrote it. Two forms are read:
//
//   mlx-lm  adapters.safetensors, formerly adapters.npz (NAME.lora_a [K, R], NAME.lora_b [R, N],
//           NAME.m [N]) and adapter_config.json with fine_tune_type lora, dora or full
//           (mlx_lm/tuner of mlx-lm 0.32.2)
//   PEFT    adapter_model.safetensors (base_model.model.NAME.lora_A.weight [R, K], lora_B.weight
//           [N, R], ...) and adapter_config.json with peft_type LORA
//           (https://huggingface.co/docs/peft/developer_guides/checkpoint)
//
// Which form a folder has follows from the names of its tensors, see load/adapter_files.h for the
// file. Modules are named without the prefixes that depend on who wrote the file or on whether the
// language model is part of a larger one: "layers.0.self_attn.q_proj", "embed_tokens", "lm_head".
// Modules of parts for images or sound are left out with a warning, as those parts of a model are.
// Nothing here knows the model; `bind` compares with it. No MLX.

#include "saker/base/json.h"
#include "saker/base/tensor.h"
#include "saker/load/adapter_files.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::adapters {

using load::kAdapterConfig;
using load::kMlxFormerWeights;
using load::kMlxWeights;
using load::kPeftWeights;

using AdapterFormat = load::AdapterForm;

// Adds scale * up (down x) to a module's output.
struct LowRank {
  Tensor down;  // [R, K]; of an embedding [V, R], a row per token.
  Tensor up;    // [N, R]
  bool embedding = false;
  float scale = 1.0F;
  std::optional<Tensor> bias;  // [N], times scale.
  // The norms of DoRA: of each output's weights, [N]; of an embedding, of the numbers that all
  // tokens have for an output (PEFT), or where `by_token`, of each token's row, [V] (mlx-lm).
  std::optional<Tensor> magnitude;
  bool by_token = false;
};

// What changes in one module.
struct ModuleSource {
  std::optional<LowRank> low_rank;
  std::optional<Tensor> weight;  // [N, K], of a norm [N], in place of the base's.
  std::optional<Tensor> bias;    // [N], in place of the base's.
  std::string name;              // As the file has it, for messages.
};

struct AdapterSource {
  AdapterFormat format = AdapterFormat::kMlx;
  // The head of a tied model is the adapted embedding too (mlx-lm), or stays the base's (PEFT).
  bool tied_head_follows = false;
  Json config;
  std::map<std::string, ModuleSource, std::less<>> modules;
  std::string identity;               // A hash of weights and configuration.
  std::filesystem::path dir;          // Where it was read, for messages.
  std::vector<std::string> warnings;  // One line each.
};

// The folder itself, or that of a repo id ("org/name", "org/name@revision") in the hub cache.
// Throws kNotFound where there is neither.
std::filesystem::path adapter_folder(const std::filesystem::path& name);

// From a folder or repo id. Throws kNotFound for a folder that holds no adapter or misses a file,
// kUnsupported naming what we can't run, kCorruptData for files that break their format and values
// that are not finite. The messages name the folder.
AdapterSource read_adapter(const std::filesystem::path& name);

// "model.language_model.layers.0.mlp" -> "layers.0.mlp".
std::string_view module_name(std::string_view path);

}  // namespace saker::adapters
