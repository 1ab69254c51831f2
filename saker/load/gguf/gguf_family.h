// SPDX-License-Identifier: Apache-2.0
#pragma once

// The families of models in GGUF files: their names there and here, and how their files differ
// from a model folder. Pure; any thread.

#include "saker/base/json/json.h"
#include "saker/load/gguf/gguf_file.h"
#include "saker/load/gguf/gguf_keys.h"
#include "saker/load/gguf/gguf_tensor_role.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace saker::load::gguf {

struct Family {
  std::string_view name;        // `general.architecture`.
  std::string_view model_type;  // In a model folder's configuration.
  std::string_view activation = "silu";
  bool rotated_pairs = false;   // Rows of queries and keys are in the order of rotated pairs.
  bool norms_plus_one = false;  // Norms hold their factors; a folder's hold them less 1.
  bool output_norms = false;    // Attention and MLP also have a norm on their output.
  bool experts = false;
  bool biased_experts = false;  // With biases; heads have attention sinks.
  bool softcaps = false;        // For scores and logits.
  bool windows = false;
  // Queries are scaled by the width of a head, but in models of this many layers by hidden size /
  // heads. 0: nothing is said of it.
  std::int64_t widest_layers = 0;
  // One layer of this many has the whole past, and the others have a rope of their own. 0: the
  // model's own pattern, one rope.
  int window_pattern = 0;
  bool bidirectional = false;     // Tokens see later ones too.
  bool linear_attention = false;  // In most layers (gguf_linear_attention.h).
  bool two_kinds = false;         // Sliding layers have other sizes (gguf_two_kinds.h).
  bool layer_norms = false;       // Norms are LayerNorms.
  bool factors = false;           // For embeddings, scores, parts of layers and logits.
  bool scaled_logits = false;     // A factor of logits alone.
  bool joined = false;  // q, k and v are one tensor, gate and up another; rope may be in part.
  bool scaled_queries = false;          // By position.
  std::string_view windowed_type = {};  // The `model_type` of files with a window; empty: the same.
};

// All that we read.
std::span<const Family> families();

// Throws kUnsupported for other families, naming those that we run.
const Family& family_of(const Header& header);

// True if files of a family with this `model_type` may belong to a model of another type:
// "gemma3_text" and "gemma3" are one. A `generic` model may be anybody's.
bool are_relatives(std::string_view family_type, std::string_view model_type);

// Adds sizes of experts with biases. Throws as Keys do.
void add_biased_experts(const Keys& keys, Json& config);

// Adds sizes of experts beside an MLP, if the file has some. Throws as Keys do.
void add_experts_beside(const Keys& keys, Json& config);

// The places of a tensor that only some families' experts have; empty for others. A tensor of gates
// and ups of all experts has two: each expert's rows of the gate come before those of up.
std::vector<TensorRole> expert_roles(const Family& family, std::string_view name);

}  // namespace saker::load::gguf
