// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/row_context.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace saker::nn {

RowContext::RowContext(std::vector<AdapterUse> rows, std::vector<kernels::RowRange> int8_rows)
    : rows_(std::move(rows)), int8_rows_(std::move(int8_rows)) {
  std::vector<kernels::RowStrengths> strengths;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    const AdapterUse& use = rows_[row];
    if (use.is_base()) {
      continue;
    }
    const auto same = [&](const Group& group) { return group.adapter == use.adapter; };
    const auto found = std::ranges::find_if(groups_, same);
    const auto index = static_cast<std::size_t>(found - groups_.begin());
    if (found == groups_.end()) {
      groups_.push_back({use.adapter, nullptr});
      strengths.emplace_back();
    }
    strengths[index].rows.push_back(static_cast<int>(row));
    strengths[index].strengths.push_back(use.strength);
  }
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    groups_[i].rows = std::make_shared<const kernels::RowStrengths>(std::move(strengths[i]));
  }
}

RowContext RowContext::observed_by(InputObserver& observer) const {
  RowContext result = *this;
  result.observer_ = &observer;
  return result;
}

RowContext RowContext::select(std::span<const int> rows) const {
  if (base_only()) {
    return {};
  }
  std::vector<AdapterUse> selected;
  selected.reserve(rows.size());
  for (const int row : rows) {
    selected.push_back(rows_.at(static_cast<std::size_t>(row)));
  }
  return RowContext(std::move(selected));
}

void RowContext::observe(const mx::array& x, std::span<const ModuleColumns> modules) const {
  if (observer_ == nullptr) {
    return;
  }
  LinearInput input{.modules = {}, .rows = x};
  for (const ModuleColumns& module : modules) {
    input.modules.push_back(module.path);
  }
  observer_->observe(input);
}

void RowContext::observe(
    const mx::array& x,
    const kernels::ExpertPermutation& sorted,
    std::span<const std::string> modules,
    int expert_count
) const {
  if (observer_ == nullptr) {
    return;
  }
  observer_->observe({
      .modules = {modules.begin(), modules.end()},
      .rows = x,
      .experts = &sorted.experts,
      .expert_count = expert_count,
  });
}

bool RowContext::changes(std::span<const ModuleColumns> modules) const {
  return std::ranges::any_of(groups_, [&](const Group& group) {
    return std::ranges::any_of(modules, [&](const ModuleColumns& module) {
      return !group.adapter->find(module.path).empty();
    });
  });
}

mx::array RowContext::change(
    const mx::array& y, const mx::array& x, std::span<const ModuleColumns> modules
) const {
  std::vector<kernels::ChangedColumns> changes;
  for (const Group& group : groups_) {
    for (const ModuleColumns& module : modules) {
      for (const auto& change : group.adapter->find(module.path)) {
        changes.push_back({change, group.rows, module.first_column});
      }
    }
  }
  return changes.empty() ? y : kernels::change_output(y, x, changes);
}

namespace {

// The strength of each sorted pair's token, [P, 1].
mx::array pair_strengths(
    const kernels::RowStrengths& rows, std::size_t tokens, const kernels::ExpertPermutation& sorted
) {
  std::vector<float> strengths(tokens, 0.0F);
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    strengths[static_cast<std::size_t>(rows.rows[i])] = rows.strengths[i];
  }
  const int count = static_cast<int>(tokens);
  const mx::array by_token(strengths.begin(), {count, 1});
  const mx::array ranks(sorted.pairs.shape(0) / count);
  return mx::take(by_token, mx::floor_divide(sorted.pairs, ranks), 0);
}

// y with `changed` in columns [first, first + changed.shape(1)).
mx::array with_columns(const mx::array& y, const mx::array& changed, int first) {
  const int end = first + changed.shape(1);
  std::vector<mx::array> parts;
  if (first > 0) {
    parts.push_back(mx::slice(y, {0, 0}, {y.shape(0), first}));
  }
  parts.push_back(changed);
  if (end < y.shape(1)) {
    parts.push_back(mx::slice(y, {0, end}, y.shape()));
  }
  return parts.size() == 1 ? changed : mx::concatenate(parts, 1);
}

}  // namespace

bool RowContext::changes_experts(std::span<const ModuleColumns> stacks) const {
  return std::ranges::any_of(groups_, [&](const Group& group) {
    return std::ranges::any_of(stacks, [&](const ModuleColumns& stack) {
      return group.adapter->find_experts(stack.path) != nullptr;
    });
  });
}

mx::array RowContext::change_experts(
    const mx::array& y,
    const mx::array& x,
    const kernels::ExpertPermutation& sorted,
    std::span<const ModuleColumns> stacks
) const {
  auto result = y;
  for (const Group& group : groups_) {
    for (const ModuleColumns& stack : stacks) {
      const auto change = group.adapter->find_experts(stack.path);
      if (change == nullptr) {
        continue;
      }
      const auto strengths = pair_strengths(*group.rows, rows_.size(), sorted);
      const auto scales = mx::expand_dims(mx::take(change->scales, sorted.experts, 0), 1);
      const auto inner = kernels::expert_linear(x, sorted, change->down);
      const auto delta = mx::multiply(
          mx::astype(kernels::expert_linear(inner, sorted, change->up), mx::float32),
          mx::multiply(strengths, scales)
      );
      const int first = stack.first_column;
      const auto own = mx::slice(result, {0, first}, {result.shape(0), first + change->up.rows()});
      const auto sum = mx::astype(mx::add(mx::astype(own, mx::float32), delta), own.dtype());
      const auto is_changed = mx::not_equal(strengths, mx::array(0.0F));
      result = with_columns(result, mx::where(is_changed, sum, own), first);
    }
  }
  return result;
}

mx::array RowContext::change_embedding(
    const mx::array& y, const mx::array& ids, std::string_view module
) const {
  auto result = y;
  for (const Group& group : groups_) {
    for (const auto& change : group.adapter->find(module)) {
      const auto x = kernels::embed(ids, change->table.value());
      result = kernels::change_output(result, x, {{change, group.rows, 0}});
    }
  }
  return result;
}

}  // namespace saker::nn
