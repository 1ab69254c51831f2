// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads an adapter's folder or file as host tensors, in one of three forms:
//
//   mlx-lm  adapters.safetensors, formerly adapters.npz (NAME.lora_a [K, R], NAME.lora_b [R, N],
//           NAME.m [N]) and adapter_config.json with fine_tune_type lora, dora or full
//           (mlx_lm/tuner of mlx-lm 0.32.2)
//   PEFT    adapter_model.safetensors (base_model.model.NAME.lora_A.weight [R, K], lora_B.weight
//           [N, R], ...) and adapter_config.json with peft_type LORA
//           (https://huggingface.co/docs/peft/developer_guides/checkpoint)
//   GGUF    one file of llama.cpp (blk.0.attn_q.weight.lora_a [R, K], .lora_b [N, R]) with the keys
//           adapter.type "lora" and adapter.lora.alpha (convert_lora_to_gguf.py of llama.cpp)
//
// The names of the tensors tell a folder's form; load/adapter_files.h finds the file. Module names
// lack the prefixes that depend on the writer, or on a larger model around the language model:
// "layers.0.self_attn.q_proj", "embed_tokens", "lm_head". Modules of image or audio parts are left
// out with a warning, as these parts of a model are. Nothing here knows the model; `bind` compares
// with it. No MLX.

#include "saker/base/json/json.h"
#include "saker/base/tensor.h"
#include "saker/load/files/adapter_files.h"

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
  Tensor down;  // [R, K]; for an embedding [V, R], a row per token.
  Tensor up;    // [N, R]
  bool embedding = false;
  float scale = 1.0F;
  std::optional<Tensor> bias;  // [N], multiplied by scale.
  // The norms of DoRA: of each output's weights, [N]. For an embedding they are per column over all
  // tokens (PEFT), or if `by_token`, per token's row, [V] (mlx-lm).
  std::optional<Tensor> magnitude;
  bool by_token = false;
  // Rows of `up` are in the order of llama.cpp's rotated pairs; fit_to_model brings them into ours.
  bool rotated_pairs = false;
};

// The change of one module.
struct ModuleSource {
  std::optional<LowRank> low_rank;
  std::optional<Tensor> weight;  // Replaces the base's: [N, K], for a norm [N].
  std::optional<Tensor> bias;    // Replaces the base's: [N].
  std::string name;              // As in the file, for messages.
};

struct AdapterSource {
  AdapterFormat format = AdapterFormat::kMlx;
  // True: a tied model's head is the adapted embedding too (mlx-lm). False: it stays the base's
  // (PEFT).
  bool tied_head_follows = false;
  Json config;
  std::map<std::string, ModuleSource, std::less<>> modules;
  std::string identity;               // A hash of weights and configuration.
  std::filesystem::path dir;          // Its folder or file, for messages.
  std::string base_type;              // The base's model_type, if the file says it; else empty.
  std::vector<std::string> warnings;  // One line each.
};

// `name` if it is a folder or a GGUF file. Else the hub cache's folder of a repo id ("org/name",
// "org/name@revision"), or the GGUF file in it. A folder that holds one GGUF file alone stands for
// this file. Throws kNotFound if neither exists.
std::filesystem::path adapter_folder(const std::filesystem::path& name);

// Reads a folder, a GGUF file or a repo id. Throws kNotFound if the folder holds no adapter or
// lacks a file, and kUnsupported naming features that we can't run. Throws kCorruptData for files
// that break their format and values that are not finite. Throws kInvalidArgument for a GGUF file
// that is no adapter. Messages name the folder or file.
AdapterSource read_adapter(const std::filesystem::path& name);

// "model.language_model.layers.0.mlp" -> "layers.0.mlp".
std::string_view module_name(std::string_view path);

}  // namespace saker::adapters
