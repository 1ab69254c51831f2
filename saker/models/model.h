// SPDX-License-Identifier: Apache-2.0
#pragma once

// A loaded model: immutable weights and layers. All changing state comes with the call, so one
// model serves any number of sequences. REQUIRES: called on the engine's thread (MLX arrays are
// lazy; evaluate them there).

#include "saker/base/json/json.h"
#include "saker/cache/sequence_cache.h"
#include "saker/kernels/mx.h"
#include "saker/models/embedding_head.h"
#include "saker/models/rerank_format.h"
#include "saker/nn/forward_context.h"
#include "saker/nn/weights/weights.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::models {

// Cached keys and values that a draft reads.
struct CachedRows {
  int layer = -1;  // Layer of the cache; -1: there is none.
  int kv_heads = 0;
  int head_dim = 0;
};

struct ModelInfo {
  std::string model_type;
  int layer_count = 0;
  int hidden_size = 0;
  int vocab_size = 0;               // Outputs of the head: ids are in [0, vocab_size).
  std::int64_t context_length = 0;  // max_position_embeddings.
  // Tokens can fork (nn::Fork) before layers 0 to this one: later layers attend to rows of this
  // one.
  int deepest_branch_layer = 0;
  std::size_t weight_bytes = 0;  // Per decode step: with the head, without an untied embedding.
  float embedding_scale = 1.0F;  // Scale of `Model::embed`'s rows in the model.
  CachedRows last_sliding = {};  // The last layer with a window that keeps rows.
  CachedRows last_full = {};     // The last layer without a window that keeps rows.
  // A token sees later ones of its text, which has to be one span. There is no next token then.
  bool bidirectional = false;
  bool has_head = true;                  // Else `unembed` throws kUnsupported.
  const RerankFormat* rerank = nullptr;  // Null: the model does not judge documents.
  // Its classifier judges a query and a document that the tokenizer joined (a cross-encoder).
  bool judges_pairs = false;
  // In files of caches a layer's are one list if it has several; all layers have as many.
  int caches_per_layer = 1;
};

struct CacheOptions {
  // > 0: layers without a window of their own keep this many rows, always the first 4.
  int max_kv_size = 0;
  // 8 or 4: all layers keep codes of this many bits, see kernels::KvShape; 32: rows in float32.
  int kv_bits = kernels::kUnquantizedBits;

  bool operator==(const CacheOptions&) const = default;
};

class Model {
 public:
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;

  virtual const ModelInfo& info() const = 0;
  // ids int32 [N], in [0, vocab_size) -> final normed hidden states [N, hidden], float32, or bf16
  // on a GPU.
  virtual mx::array forward(const mx::array& ids, nn::ForwardContext& context) const = 0;
  // Hidden states [n, hidden] of a pass, with their adapters (see RowContext::select) -> logits [n,
  // vocab_size] float32.
  virtual mx::array unembed(const mx::array& hidden, const nn::RowContext& adapters) const = 0;
  // For drafts that share the table, without adapters: ids int32 [N] -> unscaled rows of the token
  // table [N, hidden].
  virtual mx::array embed(const mx::array& ids) const = 0;
  // For drafts that share the head, without adapters: hidden states [n, hidden] -> uncapped
  // products with the head [n, vocab_size] float32.
  virtual mx::array head_products(const mx::array& hidden) const = 0;

  // The layers that make vectors of texts; null: none, for models in tests.
  virtual const EmbeddingHead* embedding_head() const { return nullptr; }

  // Modules that adapters can change.
  virtual const std::vector<nn::Module>& modules() const = 0;
  virtual cache::SequenceCache make_cache(const CacheOptions& options) const = 0;
  // Cache bytes that one decode step reads with `depth` cached rows of `kv_bits` bits. Rows that
  // several layers read count once for each.
  virtual std::size_t cache_bytes(std::int64_t depth, int kv_bits) const = 0;
};

// The token with the highest logit: hidden states [n, hidden] of a pass, with their adapters ->
// int32 [n]. Ties: the lowest id.
mx::array lm_head_argmax(
    const Model& model, const mx::array& hidden, const nn::RowContext& adapters = {}
);

using LoadProgress = std::function<void(int done, int total)>;  // Layers.

// Builds the model of config["model_type"] (see detect.h for other names). Throws kUnsupported,
// naming field and value, for models that we can't run.
std::unique_ptr<const Model> make_model(
    const Json& config, const nn::Weights& weights, const LoadProgress& progress
);

// Throws as `make_model` would, from the configuration alone; for `inspect`.
void check_config(const Json& config);

// How one layer keeps its rows.
struct LayerCacheFacts {
  std::string kind;             // As cache::LayerCache::kind.
  std::optional<int> max_size;  // Rows that stay visible; none: all.
  std::size_t row_bytes = 0;    // Per token.
  std::size_t state_bytes = 0;  // For any number of tokens.
};

// A model's layers with caches, from the configuration alone; unquantized rows have this `dtype`.
// None for encoders.
// Throws as `check_config`.
std::vector<LayerCacheFacts> layer_caches(
    const Json& config, const CacheOptions& options, mx::Dtype dtype
);

// Decoders, which have caches and may generate.
std::vector<std::string_view> supported_model_types();

// One `model_type` of each architecture.
std::vector<std::string_view> supported_architectures();

// Encoders, see encoder.h: they make vectors of texts and judge pairs of them.
std::vector<std::string_view> encoder_model_types();

// Both, for messages.
std::vector<std::string_view> all_model_types();

// True if the configuration's `model_type` is an encoder's.
bool is_encoder(const Json& config);

// Ends the message for a name that is not among them.
inline constexpr std::string_view kHowToAdd = "docs/adding-a-model.md says how to add one";

}  // namespace saker::models
