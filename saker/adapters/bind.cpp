// SPDX-License-Identifier: Apache-2.0
#include "saker/adapters/bind.h"

#include "saker/adapters/expert_modules.h"
#include "saker/adapters/model_fit.h"
#include "saker/adapters/resized.h"
#include "saker/adapters/source_parts.h"
#include "saker/adapters/weight_norms.h"
#include "saker/adapters/weight_rows.h"
#include "saker/base/error.h"
#include "saker/base/numbered_name.h"
#include "saker/base/utf8.h"
#include "saker/load/files/safetensors.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace saker::adapters {
namespace {

using kernels::AdapterDelta;
using kernels::PackedWeight;
using nn::Module;

using ModuleMap = std::map<std::string, const Module*, std::less<>>;

ModuleMap modules_by_name(const models::Model& model) {
  ModuleMap result;
  for (const Module& module : model.modules()) {
    result.emplace(module_name(module.path), &module);
  }
  return result;
}

// Throws unless the model has all modules of the adapter.
void check_names(
    const AdapterSource& source, const ModuleMap& modules, const ExpertModules& experts
) {
  constexpr std::size_t kListed = 5;
  std::vector<std::string> missing;
  for (const auto& [name, module] : source.modules) {
    if (!modules.contains(name) && !experts.find(name)) {
      missing.push_back(quote(module.name));
    }
  }
  const auto shown =
      missing.begin() + static_cast<std::ptrdiff_t>(std::min(missing.size(), kListed));
  require(
      missing.empty(),
      ErrorCode::kInvalidArgument,
      "the adapter changes {} {} that the model lacks or that adapters can't change: {}{}",
      missing.size(),
      missing.size() == 1 ? "module" : "modules",
      fmt::join(missing.begin(), shown, ", "),
      missing.size() > kListed ? ", ..." : ""
  );
}

void check_shape(
    const std::string& name, const Tensor& tensor, const std::vector<std::int64_t>& expected
) {
  require(
      tensor.shape == expected,
      ErrorCode::kInvalidArgument,
      "[{}] the adapter has shape {}, the model needs {}",
      name,
      shape_text(tensor.shape),
      shape_text(expected)
  );
}

PackedWeight pack(const std::string& name, const Tensor& tensor) {
  const auto kind = tensor.dtype == DType::kFloat32   ? kernels::WeightKind::kFloat32
                    : tensor.dtype == DType::kFloat16 ? kernels::WeightKind::kFloat16
                                                      : kernels::WeightKind::kBFloat16;
  kernels::WeightTensors tensors{.weight = tensor, .scales = {}, .biases = {}, .name = name};
  tensors.weight.release = nullptr;  // The source may be bound again.
  return PackedWeight::pack({tensors}, {.kind = kind});
}

// Sets the factors of a weight-decomposed adapter delta.
void set_ratios(AdapterDelta& change, std::span<const float> ratios, float scale) {
  change.gains.resize(ratios.size());
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    change.scales[i] = scale * ratios[i];
    change.gains[i] = ratios[i] - 1.0F;
  }
}

// An embedding with factors per row is replaced as a whole.
AdapterDelta adapted_table(const ModuleSource& source, const Module& module) {
  const LowRank& low_rank = *source.low_rank;
  const auto ratios = magnitude_ratios(module, low_rank, source.name);
  const LowRankRows rows(low_rank);
  const auto columns = static_cast<std::size_t>(module.inputs);
  std::vector<float> values(ratios.size() * columns);
  each_base_row(module, [&](int row, std::span<const float> weights) {
    const auto index = static_cast<std::size_t>(row);
    const auto adapted = std::span(values).subspan(index * columns, columns);
    std::ranges::copy(weights, adapted.begin());
    rows.add(row, low_rank.scale, adapted);
    for (float& value : adapted) {
      value *= ratios[index];
    }
  });
  AdapterDelta change;
  change.table =
      pack(source.name, float_tensor({module.outputs, module.inputs}, std::move(values)));
  change.scales.assign(columns, 1.0F);
  change.gains.assign(columns, -1.0F);
  return change;
}

// The adapter delta of a low-rank pair. DoRA does not scale the base's bias.
AdapterDelta low_rank_change(const ModuleSource& source, const Module& module) {
  const LowRank& low_rank = *source.low_rank;
  const std::string& name = source.name;
  require(
      low_rank.embedding == module.embedding,
      ErrorCode::kUnsupported,
      "[{}] a change of {}, expected one of {}",
      name,
      low_rank.embedding ? "an embedding" : "a linear layer",
      module.embedding ? "an embedding" : "a linear layer"
  );
  const auto rank = low_rank.up.shape.at(1);
  const std::int64_t outputs = module.embedding ? module.inputs : module.outputs;
  check_shape(name, low_rank.up, {outputs, rank});
  AdapterDelta change;
  change.up = pack(name, low_rank.up);
  change.scales.assign(static_cast<std::size_t>(outputs), low_rank.scale);
  if (module.embedding) {
    check_shape(name, low_rank.down, {module.outputs, rank});
    if (low_rank.by_token) {
      return adapted_table(source, module);
    }
    change.table = pack(name, low_rank.down);
    if (low_rank.magnitude) {
      set_ratios(change, magnitude_ratios(module, low_rank, name), low_rank.scale);
    }
    return change;
  }
  check_shape(name, low_rank.down, {rank, module.inputs});
  change.down = pack(name, low_rank.down);
  if (low_rank.bias) {
    change.offsets = to_floats(*low_rank.bias);
    for (float& offset : change.offsets) {
      offset *= low_rank.scale;
    }
  }
  if (low_rank.magnitude) {
    require(
        !low_rank.bias,
        ErrorCode::kUnsupported,
        "[{}] lora_bias together with use_dora can't be run",
        name
    );
    const auto ratios = magnitude_ratios(module, low_rank, name);
    set_ratios(change, ratios, low_rank.scale);
    if (module.bias) {
      change.offsets = base_bias(module);
      for (std::size_t i = 0; i < ratios.size(); ++i) {
        change.offsets[i] *= -change.gains[i];
      }
    }
  }
  return change;
}

// Replaces the base's weight, and its bias if the adapter has one.
AdapterDelta replacement_change(const ModuleSource& source, const Module& module) {
  AdapterDelta change;
  const Tensor weight = *source.weight;
  check_shape(source.name, weight, {module.outputs, module.inputs});
  const auto outputs = static_cast<std::size_t>(module.embedding ? module.inputs : module.outputs);
  change.scales.assign(outputs, 1.0F);
  change.gains.assign(outputs, -1.0F);
  if (module.embedding) {
    change.table = pack(source.name, weight);
    return change;
  }
  change.up = pack(source.name, weight);
  if (source.bias) {
    change.offsets = to_floats(*source.bias);
  } else if (module.bias) {
    change.offsets = base_bias(module);
  }
  return change;
}

// The difference to add to the output if only the bias changes.
std::vector<float> bias_difference(const ModuleSource& source, const Module& module) {
  check_shape(source.name, *source.bias, {module.outputs});
  auto result = to_floats(*source.bias);
  const auto base = base_bias(module);
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] -= base[i];
  }
  return result;
}

// A norm's factors; empty if they equal the base's.
nn::Adapter::ModuleChanges norm_changes(const ModuleSource& source, const Module& module) {
  require(
      source.weight && !source.low_rank && !source.bias,
      ErrorCode::kUnsupported,
      "[{}] a change of a norm's weight can be run, no other",
      source.name
  );
  AdapterDelta change;
  change.gains = norm_gains(module, *source.weight, source.name);
  if (std::ranges::all_of(change.gains, [](float gain) { return gain == 0.0F; })) {
    return {};
  }
  return {std::make_shared<const AdapterDelta>(std::move(change))};
}

// The base's rows have logits for its own tokens only.
void check_vocabulary(const ModuleSource& source, const Module& module) {
  const auto name = module_name(source.name);
  const bool resized =
      (name == kEmbedding || name == kHead) && source.weight && source.weight->shape.size() == 2 &&
      source.weight->shape[1] == module.inputs && source.weight->shape[0] != module.outputs;
  require(
      !resized,
      ErrorCode::kInvalidArgument,
      "[{}] the adapter has {} tokens and the base {}: the two can't share passes; one such "
      "adapter "
      "runs alone at strength 1 (--adapter, without the base), and 'saker convert --fuse' makes a "
      "model of the two",
      source.name,
      resized ? source.weight->shape[0] : 0,
      module.outputs
  );
}

nn::Adapter::ModuleChanges changes_of(const ModuleSource& source, const Module& module) {
  if (module.norm) {
    return norm_changes(source, module);
  }
  require(
      !module.experts,
      ErrorCode::kUnsupported,
      "[{}] a low-rank change of all experts of a layer can be run, no other",
      source.name
  );
  check_vocabulary(source, module);
  std::vector<AdapterDelta> changes;
  const bool replaced = source.weight && !equals_base(module, *source.weight, source.name);
  if (replaced) {
    changes.push_back(replacement_change(source, module));
  }
  if (source.low_rank) {
    require(
        !replaced || !source.low_rank->magnitude,
        ErrorCode::kUnsupported,
        "[{}] a replaced weight with a weight-decomposed change (DoRA) can't be run",
        source.name
    );
    changes.push_back(low_rank_change(source, module));
  }
  if (source.bias && !replaced) {
    const auto offsets = bias_difference(source, module);
    if (changes.empty()) {
      changes.emplace_back();
    }
    auto& target = changes.back().offsets;
    target.resize(offsets.size());
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      target[i] += offsets[i];
    }
  }
  nn::Adapter::ModuleChanges result;
  result.reserve(changes.size());
  for (AdapterDelta& change : changes) {
    result.push_back(std::make_shared<const AdapterDelta>(std::move(change)));
  }
  return result;
}

// "layers.12.mlp.up_proj" -> 12; -1 for embeddings; empty for the head. A layer's first norm and
// the final norm are computed together with the layer before.
std::optional<int> layer_of(std::string_view name, int layer_count) {
  if (name.starts_with("embed_tokens") || name.starts_with("per_layer_")) {
    return -1;
  }
  if (name == "norm") {
    return layer_count - 1;
  }
  const auto in_layer = numbered_name(name, "layers.");
  if (!in_layer) {
    return std::nullopt;
  }
  const auto layer = static_cast<int>(in_layer->number);
  return in_layer->rest == "input_layernorm" ? layer - 1 : layer;
}

// The change of a head that shares the weight of `embedding`.
ModuleSource tied_change(const ModuleSource& embedding) {
  ModuleSource head = embedding;
  if (head.low_rank) {
    head.low_rank->embedding = false;
    head.low_rank->down = transposed(embedding.low_rank->up);  // [R, H]
    head.low_rank->up = embedding.low_rank->down;              // [V, R]
  }
  return head;
}

std::shared_ptr<const nn::Adapter> bind_modules(AdapterSource& source, const models::Model& model) {
  const ModuleMap modules = modules_by_name(model);
  const ExpertModules experts(model.modules());
  check_names(source, modules, experts);
  nn::Adapter::Changes changes;
  std::map<const Module*, ExpertSources> expert_sources;
  std::optional<int> first_layer;
  const auto note_layer = [&](std::string_view name) {
    if (const auto layer = layer_of(name, model.info().layer_count)) {
      first_layer = std::min(*layer, first_layer.value_or(*layer));
    }
  };
  const auto add = [&](std::string_view name, const ModuleSource& change) {
    const Module& module = *modules.find(name)->second;
    auto found = changes_of(change, module);
    if (found.empty()) {
      return;
    }
    changes[module.path] = std::move(found);
    note_layer(name);
  };
  for (auto& [name, change] : source.modules) {
    if (const auto expert = experts.find(name)) {
      expert_sources[expert->stack].emplace(expert->index, change);
      note_layer(name);
    } else {
      add(name, change);
    }
    if (name != "embed_tokens") {
      change = {};
    }
  }
  const auto embedding = source.modules.find("embed_tokens");
  const auto head = modules.find("lm_head");
  if (source.tied_head_follows && embedding != source.modules.end() && head != modules.end() &&
      !source.modules.contains("lm_head") &&
      shares_weight(*head->second, *modules.find("embed_tokens")->second)) {
    add("lm_head", tied_change(embedding->second));
  }
  nn::Adapter::ExpertChanges expert_changes;
  for (const auto& [stack, sources] : expert_sources) {
    expert_changes.emplace(stack->path, experts_delta(*stack, sources));
  }
  return std::make_shared<const nn::Adapter>(
      source.identity, std::move(changes), first_layer, std::move(expert_changes)
  );
}

}  // namespace

std::shared_ptr<const nn::Adapter> bind(AdapterSource source, const models::Model& model) {
  return naming_folder(source.dir, [&] {
    fit_to_model(source, model);
    return bind_modules(source, model);
  });
}

std::shared_ptr<const nn::Adapter> load_adapter(
    const std::filesystem::path& dir, const models::Model& model
) {
  return bind(read_adapter(dir), model);
}

}  // namespace saker::adapters
