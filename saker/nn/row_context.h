// SPDX-License-Identifier: Apache-2.0
#pragma once

// How the tokens of a pass are computed: the adapter of each, and the operands of products. Layers
// get it beside their input. Immutable.

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/linear.h"
#include "saker/nn/adapter.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saker::nn {

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
