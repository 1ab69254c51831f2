// SPDX-License-Identifier: Apache-2.0
#pragma once

// The families of models in GGUF files: their names there and here, and how their files differ
// from a model folder. Pure; any thread.

#include "saker/load/gguf/gguf_file.h"
#include "saker/load/gguf/gguf_names.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace saker::load::gguf {

// Which layers a model has.
enum class LayerKinds : std::uint8_t {
  kAlike,
  kJoinedHeads,   // Alike, with q, k and v in one tensor.
  kKda,           // Attention or KDA (gguf_kda.h).
  kConvolutions,  // Attention or a short convolution (gguf_linear_attention.h, as the next ones).
  kStateSpaces,   // Attention or a state space.
  kSingleParts,   // Attention, a state space or an MLP alone.
  kBoth,          // Attention and a state space.
};

// Names of a mixture of experts in a model folder. Empty: the family has no such part.
struct Mixture {
  std::string_view scope = "mlp";
  std::string_view router = "gate";
  std::string_view choice_bias = {};
  std::string_view stacks = "switch_mlp";
  std::string_view shared = {};
  bool shared_beside = false;  // It lies beside that scope.
  std::string_view shared_gate = {};
  // Fields of the configuration.
  std::string_view experts = "num_experts";
  std::string_view chosen = "num_experts_per_tok";
  std::string_view width = "moe_intermediate_size";
  std::string_view shared_width = {};
  std::string_view shared_count = {};  // The shared expert's width in experts.
  std::string_view dense_layers = {};  // Before those with experts.
  std::string_view dense_width = {};   // Width of their MLPs, if `width` is that of all others.
  std::string_view selection = {};     // "sigmoid" or "softmax".
  std::string_view normalized_flag = "norm_topk_prob";
  std::string_view scale = "routed_scaling_factor";
  std::string_view choice_flag = {};  // True in files with biases that choose.
  std::string_view interval = {};     // Behind them, every so many layers have experts.
  // The router's scores are sigmoids, which files tell, with groups and factors.
  bool sigmoid = false;
  bool normalized =
      true;  // Without a key for it: weights of the chosen experts sum to 1, as the family has it.
};

struct Family {
  std::string_view name;        // `general.architecture`.
  std::string_view model_type;  // In a model folder's configuration.
  std::string_view activation = "silu";
  std::span<const ModuleNames> modules = {};  // With other names than in most families.
  std::string_view flag = {};                 // A field that is true.
  bool rotated_pairs = false;   // Rows of queries and keys are in the order of rotated pairs.
  bool norms_plus_one = false;  // Norms hold their factors; a folder's hold them less 1.
  bool output_norms = false;    // Attention and MLP also have a norm on their output.
  bool experts = false;
  Mixture mixture = {};         // With experts.
  bool biased_experts = false;  // Experts with biases; heads have attention sinks.
  LayerKinds kinds = LayerKinds::kAlike;
  bool softcaps = false;  // For scores and logits.
  // Norms of heads have no weights; models of this many experts have none. 0: they have weights.
  std::int64_t experts_without_norms = 0;
  bool windows = false;
  bool windows_by_layer = false;  // A flag for each layer says whether it slides.
  // Queries are scaled by the width of a head, but in models of this many layers by hidden size /
  // heads. 0: nothing is said of it.
  std::int64_t widest_layers = 0;
  // One layer of this many has the whole past, and the others have a rope of their own. 0: the
  // model's own pattern, one rope.
  int window_pattern = 0;
  bool bidirectional = false;     // Tokens see later ones too.
  bool linear_attention = false;  // In most layers (gguf_linear_attention.h).
  bool heads_in_order = false;    // Their value heads have the folder's order.
  bool next_layer = false;        // The layer behind the last may be a head that drafts tokens.
  bool two_kinds = false;         // Sliding layers have other sizes (gguf_two_kinds.h).
  bool layer_norms = false;       // Norms are LayerNorms.
  bool factors = false;           // For embeddings, scores, parts of layers and logits.
  bool scaled_logits = false;     // A factor of logits alone.
  bool joined = false;  // q, k and v are one tensor, gate and up another; rope may be in part.
  bool partial_rope = false;            // Heads may rotate in part.
  bool scaled_queries = false;          // By position.
  bool latents = false;                 // Latent attention (gguf_moe.h).
  std::string_view windowed_type = {};  // The `model_type` of files with a window; empty: the same.
};

// All that we read.
std::span<const Family> families();

// Throws kUnsupported for other families, naming those that we run.
const Family& family_of(const Header& header);

// True if files of a family with this `model_type` may belong to a model of another type:
// "gemma3_text" and "gemma3" are one. A `generic` model may be anybody's.
bool are_relatives(std::string_view family_type, std::string_view model_type);

}  // namespace saker::load::gguf
