// SPDX-License-Identifier: Apache-2.0
#include "saker/load/convert/mlx_weights.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/models/image_parts.h"
#include "saker/models/tensor_roster.h"
#include "saker/models/tensor_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace saker::load {
namespace {

const Json& text_part(const Json& config) {
  const auto text = config.find("text_config");
  return text != config.end() && text->is_object() ? *text : config;
}

// The head is the embedding: a head tensor would be an unused copy.
bool is_tied(const Json& config) {
  const Json& text = text_part(config);
  const bool nested = text.contains("tie_word_embeddings");
  return json_bool(nested ? text : config, "tie_word_embeddings", false);
}

bool is_unused(std::string_view name, const Json& config, const models::TensorRules& rules) {
  return name.find("rotary_emb.") != std::string_view::npos || models::is_of_images(name) ||
         rules.is_unread(name, config) ||
         (name.find("lm_head.") != std::string_view::npos && is_tied(config));
}

// `scope`: see models::TensorRules.
std::string mlx_name(const std::string& name, const TensorMap& tensors, std::string_view scope) {
  constexpr std::string_view kNested = "model.language_model.";
  if (name.starts_with(kNested)) {
    return fmt::format("language_model.model.{}", name.substr(kNested.size()));
  }
  if (tensors.contains("model.language_model.embed_tokens.weight") &&
      name.starts_with("lm_head.")) {
    return fmt::format("language_model.{}", name);
  }
  const bool bare = tensors.contains("embed_tokens.weight");
  if (!scope.empty() && !name.starts_with(scope) && !name.starts_with("mtp.")) {
    return fmt::format("{}{}{}", scope, bare ? "model." : "", name);
  }
  // A base model without a head has no prefix.
  return bare && !models::is_of_embedding_head(name) ? fmt::format("model.{}", name) : name;
}

// "P.experts.3.up_proj.weight" is part 3 of "P.switch_mlp.up_proj.weight".
struct ExpertName {
  std::string stack;
  std::size_t expert = 0;
};

std::string_view stacked_projection(std::string_view single, const nn::MoeNames& names) {
  return single == names.single.gate   ? names.stacked.gate
         : single == names.single.up   ? names.stacked.up
         : single == names.single.down ? names.stacked.down
                                       : single;
}

std::optional<ExpertName> expert_name(std::string_view name, const nn::MoeNames& names) {
  const std::string scope = fmt::format(".{}.", names.experts);
  const auto at = name.find(scope);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view rest = name.substr(at + scope.size());
  ExpertName result;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), result.expert);
  const auto digits = static_cast<std::size_t>(end - rest.data());
  if (error != std::errc() || digits == rest.size() || rest[digits] != '.') {
    return std::nullopt;
  }
  const std::string_view module = rest.substr(digits + 1);
  const auto dot = std::min(module.find('.'), module.size());
  result.stack = fmt::format(
      "{}.{}.{}{}",
      name.substr(0, at),
      names.stacks,
      stacked_projection(module.substr(0, dot), names),
      module.substr(dot)
  );
  return result;
}

// True for the tensor `fused` of a mixture; `scope` becomes the mixture's scope.
bool is_fused(std::string_view name, std::string_view fused, std::string_view& scope) {
  const bool found = name.size() > fused.size() && name.ends_with(fused) &&
                     name[name.size() - fused.size() - 1] == '.';
  scope = found ? name.substr(0, name.size() - fused.size() - 1) : scope;
  return found;
}

// Half of the rows of each expert in a tensor [E, 2 F, K].
ModelTensor half_of_experts(std::string name, const Tensor& tensor, std::size_t half) {
  ModelTensor result{.name = std::move(name), .parts = {}, .stacked = true, .offset = 0.0F};
  Tensor part = tensor;
  part.shape = {tensor.shape[1] / 2, tensor.shape[2]};
  for (std::size_t expert = 0; expert < static_cast<std::size_t>(tensor.shape[0]); ++expert) {
    const std::size_t offset = (2 * expert + half) * part.nbytes();
    part.data = std::shared_ptr<const std::byte>(tensor.data, tensor.data.get() + offset);
    result.parts.push_back(part);
  }
  return result;
}

// A fused tensor of experts as stacks; empty for other tensors.
std::vector<ModelTensor> unfused(
    const std::string& name, const Tensor& tensor, const nn::MoeNames& names
) {
  std::string_view scope;
  const bool is_inputs = is_fused(name, names.fused_inputs, scope);
  if (!is_inputs && !is_fused(name, names.fused_down, scope)) {
    return {};
  }
  require(
      tensor.shape.size() == 3 && (!is_inputs || tensor.shape[1] % 2 == 0) &&
          !names.fused_transposed,
      ErrorCode::kUnsupported,
      "{} is {}, expected a stack of experts whose outputs are rows",
      quote(name),
      shape_text(tensor.shape)
  );
  const auto stack = [&](std::string_view projection) {
    return fmt::format("{}.{}.{}.weight", scope, names.stacks, projection);
  };
  if (!is_inputs) {
    return {{.name = stack(names.stacked.down), .parts = {tensor}, .stacked = false}};
  }
  return {
      half_of_experts(stack(names.stacked.gate), tensor, 0),
      half_of_experts(stack(names.stacked.up), tensor, 1),
  };
}

// Some rows of each head in a tensor [heads * rows, K].
ModelTensor rows_of_heads(
    std::string name, const Tensor& tensor, const models::LatentRows& heads, int first, int count
) {
  ModelTensor result{.name = std::move(name), .parts = {}, .stacked = true, .offset = 0.0F};
  Tensor part = tensor;
  part.shape = {count, tensor.shape[1]};
  const std::size_t row_bytes = part.nbytes() / static_cast<std::size_t>(count);
  for (int head = 0; head < heads.heads; ++head) {
    const int row = head * (heads.keys + heads.values) + first;
    const std::size_t offset = static_cast<std::size_t>(row) * row_bytes;
    part.data = std::shared_ptr<const std::byte>(tensor.data, tensor.data.get() + offset);
    result.parts.push_back(part);
  }
  return result;
}

// The weights of latent attention's heads, which checkpoints have in one tensor; empty for other
// tensors and for codes.
std::vector<ModelTensor> split_heads(
    const std::string& name, const Tensor& tensor, const models::LatentRows& heads
) {
  constexpr std::string_view kJoined = ".kv_b_proj.weight";
  const bool is_float = tensor.dtype == DType::kFloat32 || tensor.dtype == DType::kFloat16 ||
                        tensor.dtype == DType::kBFloat16;
  if (heads.heads == 0 || !is_float || !name.ends_with(kJoined)) {
    return {};
  }
  const std::int64_t rows = std::int64_t{heads.heads} * (heads.keys + heads.values);
  require(
      tensor.shape.size() == 2 && tensor.shape[0] == rows && tensor.shape[1] > 0,
      ErrorCode::kCorruptData,
      "{} is {}, expected {} rows as the configuration says",
      quote(name),
      shape_text(tensor.shape),
      rows
  );
  const std::string scope = name.substr(0, name.size() - kJoined.size()) + ".";
  auto keys = rows_of_heads(scope + "embed_q.weight", tensor, heads, 0, heads.keys);
  keys.turned = true;
  for (Tensor& part : keys.parts) {
    std::swap(part.shape[0], part.shape[1]);
  }
  auto values =
      rows_of_heads(scope + "unembed_out.weight", tensor, heads, heads.keys, heads.values);
  return {std::move(keys), std::move(values)};
}

ModelTensor stacked(const std::string& name, const std::map<std::size_t, Tensor>& experts) {
  ModelTensor result{.name = name, .parts = {}, .stacked = true, .offset = 0.0F};
  const Tensor& first = experts.begin()->second;
  for (const auto& [expert, tensor] : experts) {
    require(
        expert == result.parts.size() && tensor.dtype == first.dtype && tensor.shape == first.shape,
        ErrorCode::kCorruptData,
        "{}: expert {} is {} {}, expected expert {} with {} {}",
        quote(name),
        expert,
        dtype_name(tensor.dtype),
        shape_text(tensor.shape),
        result.parts.size(),
        dtype_name(first.dtype),
        shape_text(first.shape)
    );
    result.parts.push_back(tensor);
  }
  return result;
}

// One of `count` equal parts of a tensor's rows.
Tensor part_of_rows(
    const Tensor& tensor, std::size_t index, std::size_t count, std::string_view name
) {
  const auto parts = static_cast<std::int64_t>(count);
  require(
      !tensor.shape.empty() && tensor.shape[0] % parts == 0,
      ErrorCode::kCorruptData,
      "{} is {}, expected a multiple of {} rows",
      quote(name),
      shape_text(tensor.shape),
      count
  );
  Tensor part = tensor;
  part.shape[0] /= parts;
  const std::size_t offset = index * part.nbytes();
  part.data = std::shared_ptr<const std::byte>(tensor.data, tensor.data.get() + offset);
  return part;
}

// The tensors of mlx-lm's model, as those of a checkpoint are added.
class WeightsByName {
 public:
  // `sanitizes`: see models::TensorRules::needs_sanitizing.
  WeightsByName(const models::TensorRules& rules, const Json& config, bool sanitizes)
      : rules_(rules), config_(config), sanitizes_(sanitizes), heads_(rules.latent_rows(config)) {}

  // `lazy`: the tensor has no bytes yet.
  void add(const std::string& name, const Tensor& tensor, bool lazy) {
    auto stacks = lazy ? std::vector<ModelTensor>() : unfused(name, tensor, rules_.experts);
    if (stacks.empty() && !lazy) {
      stacks = split_heads(name, tensor, heads_);
    }
    if (const auto expert = expert_name(name, rules_.experts)) {
      experts_[expert->stack].emplace(expert->expert, tensor);
    } else if (stacks.empty()) {
      named_.emplace(name, whole(name, tensor));
    }
    for (ModelTensor& stack : stacks) {
      const std::string own_name = stack.name;
      named_.emplace(own_name, std::move(stack));
    }
  }

  std::vector<ModelTensor> sorted() && {
    for (const auto& [name, parts] : experts_) {
      named_.emplace(name, stacked(name, parts));
    }
    std::vector<ModelTensor> result;
    result.reserve(named_.size());
    for (auto& [name, tensor] : named_) {
      result.push_back(std::move(tensor));
    }
    return result;
  }

 private:
  ModelTensor whole(const std::string& name, const Tensor& tensor) const {
    ModelTensor one{.name = name, .parts = {tensor}, .stacked = false, .offset = 0.0F};
    if (sanitizes_) {
      auto [shape, offset] = rules_.sanitized(name, tensor.shape);
      one.parts.front().shape = std::move(shape);
      one.offset = offset;
      one.row_factors = rules_.row_factors(name, config_);
    }
    one.keeps_dtype = rules_.keeps_dtype(name);
    return one;
  }

  const models::TensorRules& rules_;
  const Json& config_;
  bool sanitizes_;
  models::LatentRows heads_;
  std::map<std::string, ModelTensor> named_;
  std::map<std::string, std::map<std::size_t, Tensor>> experts_;
};

}  // namespace

std::vector<std::int64_t> ModelTensor::shape() const {
  auto shape = parts.front().shape;
  if (stacked) {
    shape.insert(shape.begin(), static_cast<std::int64_t>(parts.size()));
  }
  return shape;
}

std::vector<ModelTensor> mlx_weights(
    const TensorMap& tensors, const Json& config, const importers::PlaceholderTensors* made
) {
  const models::TensorRules rules = models::tensor_rules(config);
  const std::string_view scope = rules.mlx_scope(config);
  WeightsByName weights(rules, config, rules.needs_sanitizing(tensors));
  for (const auto& [name, tensor] : tensors) {
    if (is_unused(name, config, rules)) {
      continue;
    }
    const bool lazy = made != nullptr && made->find(tensor).has_value();
    const auto own_names = rules.mlx_names(name, config);
    require(
        own_names.size() == 1 || !lazy,
        ErrorCode::kUnsupported,
        "{} is in another tool's codes, expected floats, which are split",
        quote(name)
    );
    for (std::size_t i = 0; i < own_names.size(); ++i) {
      weights.add(
          mlx_name(own_names[i], tensors, scope),
          own_names.size() == 1 ? tensor : part_of_rows(tensor, i, own_names.size(), name),
          lazy
      );
    }
  }
  return std::move(weights).sorted();
}

}  // namespace saker::load
