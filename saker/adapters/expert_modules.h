// SPDX-License-Identifier: Apache-2.0
#pragma once

// Modules of single experts. PEFT changes each one ("layers.0.mlp.experts.3.up_proj"); mlx-lm keeps
// the changes of all experts together ("layers.0.mlp.switch_mlp.up_proj"), and they are taken apart
// when they are read. Pure.

#include "saker/adapters/adapter_source.h"
#include "saker/nn/adapter.h"
#include "saker/nn/weights/weights.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::adapters {

// "layers.0.mlp.switch_mlp.up_proj" and 3 -> "layers.0.mlp.experts.3.up_proj".
std::string single_expert(std::string_view stack, int expert);

// True for names of single experts.
bool is_single_expert(std::string_view module);

// The stacks of a model, by the names of their single experts.
class ExpertModules {
 public:
  struct Expert {
    const nn::Module* stack = nullptr;
    int index = 0;
  };

  // `modules` outlives this.
  explicit ExpertModules(const std::vector<nn::Module>& modules);

  // Takes names as module_name() gives them. Empty for modules that are no experts of the model.
  std::optional<Expert> find(std::string_view name) const;

 private:
  // By scope and name.
  std::map<std::pair<std::string, std::string>, const nn::Module*> stacks_;
};

// The change of each expert that has one.
using ExpertSources = std::map<int, ModuleSource>;

// Throws kUnsupported for changes that are no low-rank pairs, kInvalidArgument for other shapes.
std::shared_ptr<const nn::ExpertsDelta> experts_delta(
    const nn::Module& stack, const ExpertSources& sources
);

}  // namespace saker::adapters
