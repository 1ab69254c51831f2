// SPDX-License-Identifier: Apache-2.0
#pragma once

// An assistant: a few small layers that draft for a model of the same architecture, as Gemma 4 has
// them. They have no caches. Their queries attend to keys and values of the target's last sliding
// and last full layer, always from the position of the last committed row. A step joins a token's
// embedding (by the target's table) with the target's final hidden state before it. It gives the
// next token's logits and a stand-in for the target's hidden state in the next step. Immutable.
// REQUIRES: called on the engine's thread.

#include "saker/base/json/json.h"
#include "saker/cache/sequence_cache.h"
#include "saker/kernels/mx.h"
#include "saker/models/decoder.h"
#include "saker/models/decoder_config.h"
#include "saker/models/model.h"
#include "saker/nn/embedding.h"
#include "saker/nn/linear.h"
#include "saker/nn/stack/decoder_stack.h"
#include "saker/nn/weights/weights.h"

#include <optional>
#include <span>
#include <vector>

namespace saker::models {

struct AssistantConfig {
  DecoderConfig decoder;
  LayerBuilder build_layer = nullptr;
  int target_hidden = 0;
  // Small sizes group the vocabulary around this many centroids and score only tokens of the best
  // groups; 0: not grouped.
  int centroids = 0;
  int best_centroids = 0;
};

// True for the `model_type` of an assistant.
bool is_assistant_config(const Json& config);

// Throws kUnsupported or kCorruptData naming field and value. REQUIRES: is_assistant_config.
AssistantConfig read_assistant_config(const Json& config);

// Throws kInvalidArgument, naming the difference, unless it fits this target.
void check_target(const AssistantConfig& config, const ModelInfo& target);

class AssistantDraft {
 public:
  // Throws as `check_target`, and kCorruptData naming a tensor that is missing or has another
  // shape.
  AssistantDraft(
      const AssistantConfig& config, const ModelInfo& target, const nn::Weights& weights
  );

  const AssistantConfig& config() const { return config_; }

  // Takes one token per sequence: ids int32 [N] and the final normed hidden states before them [N,
  // target_hidden]. Returns final normed hidden states [N, hidden]. Only reads the target's
  // `caches`; each has at least one committed row.
  mx::array forward(
      const mx::array& ids,
      const mx::array& before,
      std::span<cache::SequenceCache* const> caches,
      const Model& target
  ) const;

  // Final hidden states -> [N, target_hidden]: `before` of the tokens that follow.
  mx::array project(const mx::array& rows) const;

  // Final hidden states -> float32 [N, vocab_size]; -infinity for tokens that are not scored.
  mx::array logits(const mx::array& rows) const;

 private:
  struct Groups {
    nn::Linear centroids;
    mx::array tokens;  // int32 [centroids, tokens of each]
  };

  static std::optional<Groups> make_groups(
      const AssistantConfig& config, const nn::Weights& weights
  );

  AssistantConfig config_;
  std::vector<int> source_layers_;  // Layers of the target's caches.
  nn::Linear input_;
  nn::Linear output_;
  nn::Embedding embedding_;
  nn::DecoderStack stack_;
  std::optional<Groups> groups_;
};

}  // namespace saker::models
