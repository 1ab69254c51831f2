// SPDX-License-Identifier: Apache-2.0
#pragma once

// A loaded model: immutable weights and layers. Everything that changes comes in with the call, so
// one model serves any number of sequences. REQUIRES: called on the engine's thread (MLX arrays are
// lazy; evaluate them there).

#include "saker/base/json.h"
#include "saker/cache/sequence_cache.h"
#include "saker/kernels/mx.h"
#include "saker/nn/forward_context.h"
#include "saker/nn/weights.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::models {

// Rows of keys and values that a draft reads.
struct CachedRows {
  int layer = -1;  // Of the cache; -1: none are kept.
  int kv_heads = 0;
  int head_dim = 0;
};

struct ModelInfo {
  std::string model_type;
  int layer_count = 0;
  int hidden_size = 0;
  int vocab_size = 0;               // Rows of the head: ids are in [0, vocab_size).
  std::int64_t context_length = 0;  // max_position_embeddings.
  int deepest_branch_layer =
      0;  // Rows can part (nn::Fork) before layer 0 to this one: later layers
          // attend to rows that this one keeps.
  std::size_t weight_bytes = 0;  // Read by one decode step: head yes, untied embedding no.
  float embedding_scale = 1.0F;  // Of what `Model::embed` gives.
  CachedRows last_sliding = {};  // Of the last layer with a window that keeps rows,
  CachedRows last_full = {};     // and of the last one without.
};

struct CacheOptions {
  int max_kv_size =
      0;  // > 0: layers without a window of their own keep that many rows, the first 4 always.
  // 8 or 4: all layers keep codes of so many bits, see kernels::KvShape; 32: rows in float32.
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
  // ids int32 [N], in [0, vocab_size) -> final normed hidden rows [N, hidden], float32 or, on a
  // GPU, bf16.
  virtual mx::array forward(const mx::array& ids, nn::ForwardContext& context) const = 0;
  // hidden [n, hidden], rows of a pass, and their adapters (see RowContext::select) -> logits
  // [n, vocab_size] float32.
  virtual mx::array unembed(const mx::array& hidden, const nn::RowContext& adapters) const = 0;
  // For drafts that borrow them, without adapters: ids int32 [N] -> rows of the token table as the
  // checkpoint has them, unscaled [N, hidden];
  virtual mx::array embed(const mx::array& ids) const = 0;
  // and hidden [n, hidden] -> products with the head, uncapped [n, vocab_size] float32.
  virtual mx::array head_products(const mx::array& hidden) const = 0;
  // What adapters can change.
  virtual const std::vector<nn::Module>& modules() const = 0;
  virtual cache::SequenceCache make_cache(const CacheOptions& options) const = 0;
  // Cache bytes that one decode step reads (rows that layers share by each of them) when `depth`
  // rows of `kv_bits` bits are cached.
  virtual std::size_t cache_bytes(std::int64_t depth, int kv_bits) const = 0;
};

// The token that the head gives the highest logit, of each row: hidden [n, hidden], rows of a pass,
// and their adapters, -> int32 [n]. Ties: the lowest id.
mx::array lm_head_argmax(
    const Model& model, const mx::array& hidden, const nn::RowContext& adapters = {}
);

using LoadProgress = std::function<void(int done, int total)>;  // Layers.

// Builds the model that config["model_type"] names (see detect.h for other names). Throws
// kUnsupported, naming field and value, for what we can't run.
std::unique_ptr<const Model> make_model(
    const Json& config, const nn::Weights& weights, const LoadProgress& progress
);

// Throws as `make_model` would, from the configuration alone: for `inspect`.
void check_config(const Json& config);

// How one layer keeps its rows.
struct LayerCacheFacts {
  std::string kind;             // As cache::LayerCache::kind.
  std::optional<int> max_size;  // Rows that stay visible; none: all.
  std::size_t row_bytes = 0;    // Of one token.
  std::size_t state_bytes = 0;  // Whatever the number of tokens.
};

// Those of a model's layers that keep something, from the configuration alone; rows are of `dtype`
// before they become codes. Throws as `check_config`.
std::vector<LayerCacheFacts> layer_caches(
    const Json& config, const CacheOptions& options, mx::Dtype dtype
);

std::vector<std::string_view> supported_model_types();

// For the message that names none of them.
inline constexpr std::string_view kHowToAdd = "docs/adding-a-model.md says how to add one";

}  // namespace saker::models
