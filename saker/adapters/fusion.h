// SPDX-License-Identifier: Apache-2.0
#pragma once

// A model with an adapter's change in its weights. Its tensors are made one module at a time, for
// the files of a folder or for a model in memory. REQUIRES: on the engine's thread.

#include "saker/adapters/adapter_source.h"
#include "saker/adapters/expert_modules.h"
#include "saker/adapters/fused_module.h"
#include "saker/base/json/json.h"
#include "saker/load/files/safetensors_writer.h"
#include "saker/load/files/weight_files.h"
#include "saker/nn/weights/weights.h"

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace saker::adapters {

class Fusion {
 public:
  // Throws as load_checkpoint, read_adapter and bind do. Throws kUnsupported if the adapter unties
  // a head that this architecture always ties. Throws kInvalidArgument for a strength other than 1
  // if the vocabulary is resized.
  Fusion(const std::filesystem::path& model, const std::filesystem::path& adapter, float strength);

  // Tensor names by file of the base; those of a module are adjacent.
  const std::map<std::string, std::vector<std::string>>& shards() const { return shards_; }

  // True if the base has an index of its files.
  bool has_index() const { return has_index_; }

  // Names of modules that change; below, of tensors that the base lacks.
  std::vector<std::string> changed_modules() const;

  const std::vector<std::string>& added() const { return added_; }

  load::PlannedTensor info(const std::string& name) const;
  // The base's own tensor, or one that is made now.
  Tensor tensor(const std::string& name);
  bool is_made(std::string_view name) const;

  // config.json
  Json config() const;

  const std::vector<std::string>& warnings() const { return warnings_; }

  const std::string& adapter_identity() const { return adapter_identity_; }

 private:
  // The input for the tensors of one module.
  struct Target {
    std::string like;                         // The base's module with the same form of tensors.
    std::optional<FusedModule> change;        // Empty: the base's tensors under another name.
    std::map<int, FusedModule> experts = {};  // Instead: changes of experts of a stack.
  };

  using ModuleMap = std::map<std::string, const nn::Module*, std::less<>>;  // By module_name.

  // Facts about the base while it is loaded.
  struct Base {
    ModuleMap modules;
    std::string model_type;
    bool tied = false;  // Its head is its embedding.
  };

  void take_vocabulary(AdapterSource& source, const Base& base, float strength);
  void add_change(const nn::Module& module, ModuleSource change, float strength);
  void add_expert(
      std::string_view name,
      const ExpertModules::Expert& expert,
      ModuleSource change,
      float strength
  );
  void choose_targets(const Base& base, bool tied_head_follows);
  void plan();
  void add_missing(std::set<std::string>& names);
  const Tensor& base_tensor(const std::string& name) const;
  kernels::WeightTensors weight_tensors(const std::string& module) const;
  DType bias_dtype(const std::string& module) const;
  void make_weight(const Target& target);
  void make_experts(const Target& target);

  bool has_index_ = false;
  load::ModelTensors base_;
  Json config_;  // The base's.
  std::vector<std::string> warnings_;
  std::string adapter_identity_;
  std::map<std::string, FusedModule, std::less<>> changes_;  // By module_name.
  std::map<std::string, Target, std::less<>> targets_;       // By path.
  std::string head_;  // Path of a head that was tied to `embedding_` before.
  std::string embedding_;
  int tokens_ = 0;           // Size of a resized vocabulary; 0: the base's.
  bool stays_tied_ = false;  // With tokens_: the embedding is also the head.
  std::map<std::string, std::vector<std::string>> shards_;
  std::vector<std::string> added_;
  std::string latest_;  // The module of `latest_tensors_`.
  kernels::WeightTensors latest_tensors_;
};

}  // namespace saker::adapters
