// SPDX-License-Identifier: Apache-2.0
#pragma once

// A fine-tune as changes to the outputs of a model's modules.
//
// An adapter is bound to one model: modules have the names of its checkpoint. The base's weights
// stay unchanged, so tokens of the base, of adapters and of any strength share one pass. Tokens of
// the base run the base's operations only, whatever is beside them: their bits are the base's.
// Immutable; any number may be in memory at once; safe to use from any thread.

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/adapter_delta.h"
#include "saker/kernels/ops/experts/expert_linear.h"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saker::nn {

// The change of a projection of all experts: y += strength * scale * up(down(x)), each with its
// expert's.
struct ExpertsDelta {
  kernels::ExpertWeights down;  // [R, K]
  kernels::ExpertWeights up;    // [N, R]
  mx::array scales;             // [E] float32.

  std::size_t nbytes() const;
};

class Adapter {
 public:
  // Changes of one module; they add up.
  using ModuleChanges = std::vector<std::shared_ptr<const kernels::AdapterDelta>>;
  using Changes = std::map<std::string, ModuleChanges, std::less<>>;
  // By the path of the stack ("model.layers.0.mlp.switch_mlp.up_proj").
  using ExpertChanges = std::map<std::string, std::shared_ptr<const ExpertsDelta>, std::less<>>;

  // `identity`: a hash of everything the adapter is made from, see `identity()`. `changes`: by
  // module path ("model.layers.0.self_attn.q_proj"). `first_layer`: see below.
  Adapter(
      std::string identity,
      Changes changes,
      std::optional<int> first_layer,
      ExpertChanges experts = {}
  );

  // Equal exactly for equal weights and configuration; a key for caches.
  const std::string& identity() const { return identity_; }

  // The changes of this module; empty if it stays the base's.
  std::span<const std::shared_ptr<const kernels::AdapterDelta>> find(std::string_view module) const;
  // As above for experts; null if they stay the base's.
  std::shared_ptr<const ExpertsDelta> find_experts(std::string_view stack) const;

  // The lowest decoder layer whose output differs from the base's; -1: already the embedding
  // differs. None: no layer differs, at most the final norm and the head.
  std::optional<int> first_layer() const { return first_layer_; }

  std::size_t nbytes() const { return nbytes_; }

 private:
  std::string identity_;
  Changes changes_;
  ExpertChanges experts_;
  std::optional<int> first_layer_;
  std::size_t nbytes_ = 0;
};

// A token's adapter. A module's output is y_base + strength * (y_adapter - y_base).
struct AdapterUse {
  std::shared_ptr<const Adapter> adapter;  // Null: the base.
  float strength = 1.0F;                   // 0: the base's bits.

  bool is_base() const { return adapter == nullptr || strength == 0.0F; }
};

// A key for caches of rows: equal exactly if rows of equal tokens have equal bits. Empty for the
// base.
std::string adapter_identity(const AdapterUse& use);

}  // namespace saker::nn
