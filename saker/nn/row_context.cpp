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
