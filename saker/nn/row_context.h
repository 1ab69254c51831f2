// SPDX-License-Identifier: Apache-2.0
#pragma once

// How the tokens of a pass are computed: the adapter of each, the operands of products, and who sees
// their inputs. Layers get it beside their input. Immutable.

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/experts/expert_choice.h"
#include "saker/kernels/ops/linear.h"
#include "saker/nn/adapter.h"
#include "saker/nn/input_observer.h"

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

  // As this, but the layers hand their inputs to `observer`, which outlives the pass.
  RowContext observed_by(InputObserver& observer) const;

  // The adapters of `rows` (indices into these tokens), in that order; without int8 operands and
  // unobserved.
  RowContext select(std::span<const int> rows) const;

  bool base_only() const { return groups_.empty(); }

  std::span<const kernels::RowRange> int8_rows() const { return int8_rows_; }

  // True if inputs have to exist, as arrays of their own.
  bool is_observed() const { return observer_ != nullptr; }

  // Hands x [N, inputs] of these modules to the observer, if there is one.
  void observe(const mx::array& x, std::span<const ModuleColumns> modules) const;
  // As above for experts' modules. x [P, inputs] has one row per sorted pair.
  void observe(
      const mx::array& x,
      const kernels::ExpertPermutation& sorted,
      std::span<const std::string> modules,
      int expert_count
  ) const;

  // True if a token's adapter changes one of these modules.
  bool changes(std::span<const ModuleColumns> modules) const;

  // Changes y [N, outputs] of modules side by side, for the tokens whose adapter changes them. x
  // [N, inputs] is the modules' input.
  mx::array change(const mx::array& y, const mx::array& x, std::span<const ModuleColumns> modules)
      const;
  // As `changes` and `change` for projections of experts: x [P, inputs] and y [P, outputs] have one
  // row per sorted pair. Tokens of the base keep their bits.
  bool changes_experts(std::span<const ModuleColumns> stacks) const;
  mx::array change_experts(
      const mx::array& y,
      const mx::array& x,
      const kernels::ExpertPermutation& sorted,
      std::span<const ModuleColumns> stacks
  ) const;
  // As `change` for y [N, outputs] of an embedding, ids [N].
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
  InputObserver* observer_ = nullptr;  // Not owned.
};

}  // namespace saker::nn
