// SPDX-License-Identifier: Apache-2.0
#include "saker/adapters/fusion.h"

#include "saker/adapters/bind.h"
#include "saker/adapters/model_fit.h"
#include "saker/adapters/resized.h"
#include "saker/adapters/source_parts.h"
#include "saker/adapters/weight_norms.h"
#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/load/checkpoint.h"
#include "saker/load/files/safetensors.h"
#include "saker/load/sources/open_imported.h"
#include "saker/models/tensor_rules.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <utility>

namespace saker::adapters {
namespace {

namespace fs = std::filesystem;

struct TensorName {
  std::string_view module;
  std::string_view part;
};

TensorName split_name(std::string_view name) {
  const auto dot = name.rfind('.');
  return dot == std::string_view::npos ? TensorName{{}, name}
                                       : TensorName{name.substr(0, dot), name.substr(dot + 1)};
}

// Reads tables of tokens before the base is in memory too.
AdapterSource read_checked(const fs::path& adapter) {
  AdapterSource source = read_adapter(adapter);
  for (auto& [name, module] : source.modules) {
    if (module.weight) {
      module.weight = checked_tensor(module.name, *module.weight, module.weight->shape.size());
      if (module.weight->release) {
        module.weight->release();
      }
    }
  }
  return source;
}

load::LoadedCheckpoint load_base(const fs::path& model) {
  require(
      !load::importers::is_imported(model),
      ErrorCode::kUnsupported,
      "{}: is in another program's format, expected a folder of MLX's; 'saker convert' writes one",
      quote_path(model)
  );
  return load::load_checkpoint(model);
}

}  // namespace

Fusion::Fusion(const fs::path& model, const fs::path& adapter, float strength) {
  AdapterSource source = read_checked(adapter);
  load::LoadedCheckpoint loaded = load_base(model);
  const load::WeightFiles files = load::find_weight_files(model);
  has_index_ = !files.shard_of.empty();
  base_ = load::read_weight_files(files);
  config_ = std::move(loaded.config);
  warnings_ = std::move(loaded.warnings);
  warnings_.insert(warnings_.end(), source.warnings.begin(), source.warnings.end());
  Base base{.modules = {}, .model_type = loaded.model->info().model_type};
  for (const nn::Module& module : loaded.model->modules()) {
    base.modules.emplace(module_name(module.path), &module);
  }
  const auto head = base.modules.find(kHead);
  const auto embedding = base.modules.find(kEmbedding);
  base.tied = head != base.modules.end() && embedding != base.modules.end() &&
              shares_weight(*head->second, *embedding->second);
  adapter_identity_ = source.identity;
  take_vocabulary(source, base, strength);
  naming_folder(source.dir, [&] { fit_to_model(source, *loaded.model); });
  bind(source, *loaded.model);  // Throws if anything does not fit.
  const ExpertModules experts(loaded.model->modules());
  for (const auto& [name, change] : source.modules) {
    if (const auto expert = experts.find(name)) {
      add_expert(name, *expert, change, strength);
      continue;
    }
    const nn::Module& module = *base.modules.find(name)->second;
    ModuleSource real = without_equals(change, module);
    if (real.weight || real.bias || real.low_rank) {
      add_change(module, std::move(real), strength);
    }
  }
  choose_targets(base, source.tied_head_follows);
  plan();
}

// Drops the base's weight, which is read again from its file for the change: the model is not kept.
void Fusion::add_change(const nn::Module& module, ModuleSource change, float strength) {
  FusedModule fused{.base = module, .change = std::move(change), .strength = strength};
  if (module.weight) {
    fused.format = module.weight->format();
    fused.base.weight.reset();
    fused.base.first_row = 0;
  }
  changes_.emplace(module_name(module.path), std::move(fused));
}

// Experts are stored one by one, or as a stack of all.
void Fusion::add_expert(
    std::string_view name, const ExpertModules::Expert& expert, ModuleSource change, float strength
) {
  const nn::Module& stack = *expert.stack;
  const nn::ExpertStack& experts = *stack.experts;
  FusedModule fused{.base = stack, .change = std::move(change), .strength = strength};
  fused.base.experts.reset();
  fused.base.path = fmt::format("{}.{}.{}", experts.scope, expert.index, experts.name);
  fused.format = experts.formats[static_cast<std::size_t>(expert.index)];
  if (base_.tensors.contains(fused.base.path + ".weight")) {
    changes_.emplace(name, std::move(fused));
    return;
  }
  require(
      base_.tensors.contains(stack.path + ".weight"),
      ErrorCode::kUnsupported,
      "[{}] the base has gates and ups of experts in one tensor, which can't be fused; 'saker "
      "convert' writes a model that can",
      fused.change.name
  );
  Target& target = targets_[stack.path];
  target.like = stack.path;
  target.experts.emplace(expert.index, std::move(fused));
}

// Takes embedding and head of a resized vocabulary.
void Fusion::take_vocabulary(AdapterSource& source, const Base& base, float strength) {
  const auto embedding = base.modules.find(kEmbedding);
  if (embedding == base.modules.end()) {
    return;
  }
  const nn::Module& table = *embedding->second;
  ResizedVocabulary resized = take_resized(source, table.outputs, table.inputs, base.tied);
  if (resized.tokens == 0) {
    return;
  }
  require(
      strength == 1.0F,
      ErrorCode::kInvalidArgument,
      "strength: got {}, expected 1 for an adapter with a vocabulary of another size ({} tokens, "
      "the base has {})",
      strength,
      resized.tokens,
      table.outputs
  );
  tokens_ = static_cast<int>(resized.tokens);
  for (auto& [name, change] : resized.modules) {
    if (name != kHead || !resized.tied) {
      add_change(*base.modules.find(name)->second, std::move(change), strength);
      changes_.find(name)->second.resized_rows = tokens_;
    }
  }
  stays_tied_ = resized.tied;
}

// A tied model's head gets its own tensors once it differs from the embedding.
void Fusion::choose_targets(const Base& base, bool tied_head_follows) {
  const bool head_changes = changes_.contains(kHead);
  const bool embedding_changes = changes_.contains(kEmbedding);
  for (const auto& [name, change] : changes_) {
    if (name != kHead || !base.tied) {
      targets_[change.base.path] = {change.base.path, change};
    }
  }
  if (!base.tied || stays_tied_ || (!head_changes && (!embedding_changes || tied_head_follows))) {
    return;
  }
  require(
      !models::is_always_tied(base.model_type),
      ErrorCode::kUnsupported,
      "the adapter changes only one of embedding and head, which are one in a model of type {}",
      base.model_type
  );
  const std::string& path = base.modules.find(kEmbedding)->second->path;
  head_ = path.starts_with("language_model.") ? "language_model.lm_head" : "lm_head";
  embedding_ = path;
  Target target{path, std::nullopt};
  if (head_changes) {
    target.change = changes_.find(kHead)->second;
  }
  targets_[head_] = std::move(target);
}

// Assigns tensors to shards; a draft's tensors are not the model's.
void Fusion::plan() {
  std::map<fs::path, std::set<std::string>> files;  // Sorted: keeps modules together.
  for (const auto& [name, path] : base_.file_of) {
    if (!load::is_of_draft(name)) {
      files[path].insert(name);
    }
  }
  for (auto& [path, names] : files) {
    add_missing(names);
    shards_[path.filename().string()].assign(names.begin(), names.end());
  }
}

// Adds biases, and a head that was tied to the embedding.
void Fusion::add_missing(std::set<std::string>& names) {
  std::vector<std::string> added;
  for (const std::string& name : names) {
    const auto [module, part] = split_name(name);
    if (part == "weight" && targets_.contains(module)) {
      const std::string bias = std::string(module) + ".bias";
      const Target& target = targets_.find(module)->second;
      if (!base_.tensors.contains(bias) && target.change &&
          fused_bias(*target.change, DType::kFloat32)) {
        added.push_back(bias);
      }
    }
    if (!head_.empty() && module == embedding_ && part != "bias") {
      added.push_back(fmt::format("{}.{}", head_, part));
    }
  }
  for (std::string& name : added) {
    if (names.insert(name).second) {
      added_.push_back(std::move(name));
    }
  }
}

std::vector<std::string> Fusion::changed_modules() const {
  std::vector<std::string> names;
  for (const auto& [name, change] : changes_) {
    names.push_back(change.change.name);
  }
  for (const auto& [path, target] : targets_) {
    for (const auto& [expert, change] : target.experts) {
      names.push_back(change.change.name);
    }
  }
  return names;
}

const Tensor& Fusion::base_tensor(const std::string& name) const {
  return base_.tensors.find(name)->second;
}

kernels::WeightTensors Fusion::weight_tensors(const std::string& module) const {
  const auto find = [&](std::string_view part) {
    const auto found = base_.tensors.find(fmt::format("{}.{}", module, part));
    return found == base_.tensors.end() ? std::nullopt : std::optional(found->second);
  };
  return {*find("weight"), find("scales"), find("biases"), module};
}

// The dtype for a bias that the base lacks: that of the module's other tensors.
DType Fusion::bias_dtype(const std::string& module) const {
  if (const auto found = base_.tensors.find(module + ".bias"); found != base_.tensors.end()) {
    return found->second.dtype;
  }
  const auto like = weight_tensors(module);
  const DType dtype = like.scales ? like.scales->dtype : like.weight.dtype;
  return dtype == DType::kUInt8 ? DType::kBFloat16 : dtype;
}

bool Fusion::is_made(std::string_view name) const {
  const auto target = targets_.find(split_name(name).module);
  return target != targets_.end() &&
         (target->second.change.has_value() || !target->second.experts.empty());
}

load::PlannedTensor Fusion::info(const std::string& name) const {
  const auto [module, part] = split_name(name);
  const auto target = targets_.find(module);
  if (target == targets_.end()) {
    const Tensor& tensor = base_tensor(name);
    return {name, tensor.dtype, tensor.shape};
  }
  if (part == "bias" && target->second.experts.empty()) {
    return {name, bias_dtype(target->second.like), {target->second.change->base.outputs}};
  }
  const Tensor& like = base_tensor(fmt::format("{}.{}", target->second.like, part));
  auto shape = like.shape;
  if (target->second.change && target->second.change->resized_rows > 0) {
    shape.front() = target->second.change->resized_rows;
  }
  return {name, like.dtype, std::move(shape)};
}

void Fusion::make_weight(const Target& target) {
  const auto like = weight_tensors(target.like);
  FusedModule module = *target.change;
  if (!module.base.norm && module.resized_rows == 0) {
    module.base.weight = kernels::PackedWeight::pack({like}, module.format);
  }
  latest_tensors_ = fused_weight(module, like);
  for (const std::optional<Tensor>& read :
       {std::optional(like.weight), like.scales, like.biases, module.change.weight}) {
    if (read && read->release) {
      read->release();
    }
  }
}

// Experts without a change keep their bytes.
void Fusion::make_experts(const Target& target) {
  const auto like = weight_tensors(target.like);
  const std::int64_t count = like.weight.shape.front();
  latest_tensors_ = like;
  const std::array<std::optional<Tensor>, 3> sources{like.weight, like.scales, like.biases};
  std::array<std::shared_ptr<std::vector<std::byte>>, 3> bytes;
  for (auto& of_part : bytes) {
    of_part = std::make_shared<std::vector<std::byte>>();
  }
  for (std::int64_t expert = 0; expert < count; ++expert) {
    std::array<std::optional<Tensor>, 3> own = sources;
    for (std::optional<Tensor>& part : own) {
      if (part) {
        part = rows_of(*part, expert, 1);
        part->shape.erase(part->shape.begin());
        part->release = nullptr;
      }
    }
    const auto changed = target.experts.find(static_cast<int>(expert));
    if (changed != target.experts.end()) {
      FusedModule module = changed->second;
      const kernels::WeightTensors base{*own[0], own[1], own[2], like.name};
      module.base.weight = kernels::PackedWeight::pack({base}, module.format);
      const auto fused = fused_weight(module, base);
      own = {fused.weight, fused.scales, fused.biases};
    }
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (own[i]) {
        const auto data = own[i]->bytes();
        bytes[i]->insert(bytes[i]->end(), data.begin(), data.end());
      }
    }
  }
  const auto finish = [&](Tensor& tensor, std::size_t index) {
    tensor.data = std::shared_ptr<const std::byte>(bytes[index], bytes[index]->data());
    tensor.release = nullptr;
  };
  finish(latest_tensors_.weight, 0);
  if (latest_tensors_.scales) {
    finish(*latest_tensors_.scales, 1);
  }
  if (latest_tensors_.biases) {
    finish(*latest_tensors_.biases, 2);
  }
  for (const std::optional<Tensor>& read : sources) {
    if (read && read->release) {
      read->release();
    }
  }
}

Tensor Fusion::tensor(const std::string& name) {
  const auto [module, part] = split_name(name);
  const auto found = targets_.find(module);
  if (found == targets_.end()) {
    return base_tensor(name);
  }
  const Target& target = found->second;
  if (!target.experts.empty() && part == "bias") {
    return base_tensor(name);
  }
  if (!target.change && target.experts.empty()) {
    return base_tensor(fmt::format("{}.{}", target.like, part));
  }
  if (part == "bias") {
    return *fused_bias(*target.change, bias_dtype(target.like));
  }
  if (latest_ != module) {
    latest_.clear();
    latest_tensors_ = {};
    target.experts.empty() ? make_weight(target) : make_experts(target);
    latest_ = module;
  }
  return part == "weight"   ? latest_tensors_.weight
         : part == "scales" ? *latest_tensors_.scales
                            : *latest_tensors_.biases;
}

Json Fusion::config() const {
  Json config = config_;
  if (!head_.empty()) {
    config["tie_word_embeddings"] = false;
    if (const auto text = config.find("text_config"); text != config.end()) {
      (*text)["tie_word_embeddings"] = false;
    }
    for (const std::string_view key : {"quantization", "quantization_config"}) {
      const auto section = config.find(key);
      if (section != config.end() && section->is_object() && section->contains(embedding_)) {
        (*section)[head_] = (*section)[embedding_];
      }
    }
  }
  if (tokens_ > 0) {
    const auto text = config.find("text_config");
    (text == config.end() ? config : *text)["vocab_size"] = tokens_;
  }
  return config;
}

}  // namespace saker::adapters
