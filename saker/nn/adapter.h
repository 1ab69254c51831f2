// SPDX-License-Identifier: Apache-2.0
#pragma once

// A fine-tune as changes to the outputs of a model's modules, and the tokens of a pass that use it.
//
// An adapter is bound to one model: modules have the names of its checkpoint. The base's weights
// stay unchanged, so tokens of the base, of adapters and of any strength share one pass. Tokens of
// the base run the base's operations only, whatever is beside them: their bits are the base's.
// Immutable; any number may be in memory at once; safe to use from any thread.

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/adapter_delta.h"
#include "saker/kernels/ops/linear.h"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saker::nn {

class Adapter {
 public:
  // Changes of one module; they add up.
  using ModuleChanges = std::vector<std::shared_ptr<const kernels::AdapterDelta>>;
  using Changes = std::map<std::string, ModuleChanges, std::less<>>;

  // `identity`: a hash of everything the adapter is made from, see `identity()`. `changes`: by
  // module path ("model.layers.0.self_attn.q_proj"). `first_layer`: see below.
  Adapter(std::string identity, Changes changes, std::optional<int> first_layer);

  // Equal exactly for equal weights and configuration; a key for caches.
  const std::string& identity() const { return identity_; }

  // The changes of this module; empty if it stays the base's.
  std::span<const std::shared_ptr<const kernels::AdapterDelta>> find(std::string_view module) const;

  // The lowest decoder layer whose output differs from the base's; -1: already the embedding
  // differs. None: no layer differs, at most the final norm and the head.
  std::optional<int> first_layer() const { return first_layer_; }

  std::size_t nbytes() const { return nbytes_; }

 private:
  std::string identity_;
  Changes changes_;
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

// The first column of a module's outputs.
struct ModuleColumns {
  std::string path;
  int first_column = 0;
};

// The linear layers' settings per token of a pass: adapters, and operands.
class RowContext {
 public:
  RowContext() = default;  // All tokens use the base.
  // `int8_rows`: see kernels::linear. The adapters' own products do not use int8.
  explicit RowContext(std::vector<AdapterUse> rows, std::vector<kernels::RowRange> int8_rows = {});

  // The adapters of `rows` (indices into these tokens), in that order; without int8 operands.
  RowContext select(std::span<const int> rows) const;

  bool base_only() const { return groups_.empty(); }

  std::span<const kernels::RowRange> int8_rows() const { return int8_rows_; }

  // True if a token's adapter changes one of these modules.
  bool changes(std::span<const ModuleColumns> modules) const;

  // Changes y [N, outputs] of modules side by side, for the tokens whose adapter changes them. x
  // [N, inputs] is the modules' input.
  mx::array change(const mx::array& y, const mx::array& x, std::span<const ModuleColumns> modules)
      const;
  // As above for y [N, outputs] of an embedding, ids [N].
  mx::array change_embedding(const mx::array& y, const mx::array& ids, std::string_view module)
      const;

 private:
  // Tokens that share an adapter, at any strengths.
  struct Group {
    std::shared_ptr<const Adapter> adapter;
    std::shared_ptr<const kernels::RowStrengths> rows;
  };

  std::vector<AdapterUse> rows_;  // Empty: all tokens use the base.
  std::vector<Group> groups_;     // Without tokens of the base.
  std::vector<kernels::RowRange> int8_rows_;
};

}  // namespace saker::nn
