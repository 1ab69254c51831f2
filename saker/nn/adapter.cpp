// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/adapter.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

namespace saker::nn {

std::size_t ExpertsDelta::nbytes() const {
  const auto count = static_cast<std::size_t>(down.experts());
  return count * (down.expert_nbytes() + up.expert_nbytes());
}

Adapter::Adapter(
    std::string identity, Changes changes, std::optional<int> first_layer, ExpertChanges experts
)
    : identity_(std::move(identity)),
      changes_(std::move(changes)),
      experts_(std::move(experts)),
      first_layer_(first_layer) {
  for (const auto& [path, change] : experts_) {
    nbytes_ += change->nbytes();
  }
  for (const auto& [path, changes_of_module] : changes_) {
    for (const auto& change : changes_of_module) {
      nbytes_ += change->nbytes();
    }
  }
}

std::span<const std::shared_ptr<const kernels::AdapterDelta>> Adapter::find(std::string_view module
) const {
  const auto found = changes_.find(module);
  if (found == changes_.end()) {
    return {};
  }
  return found->second;
}

std::shared_ptr<const ExpertsDelta> Adapter::find_experts(std::string_view stack) const {
  const auto found = experts_.find(stack);
  return found != experts_.end() ? found->second : nullptr;
}

std::string adapter_identity(const AdapterUse& use) {
  if (use.is_base()) {
    return {};
  }
  return fmt::format(
      "{}:{:08x}", use.adapter->identity(), std::bit_cast<std::uint32_t>(use.strength)
  );
}

}  // namespace saker::nn
