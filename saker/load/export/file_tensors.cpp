// SPDX-License-Identifier: Apache-2.0
#include "saker/load/export/file_tensors.h"

#include "saker/base/error.h"
#include "saker/base/numbered_name.h"
#include "saker/base/utf8.h"
#include "saker/load/gguf/gguf_names.h"
#include "saker/models/image_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

namespace saker::load::gguf {
namespace {

template <std::size_t Size>
std::string_view file_module(const std::array<ModuleNames, Size>& names, std::string_view ours) {
  const auto* found = std::ranges::find(names, ours, &ModuleNames::ours);
  return found != names.end() ? found->gguf : std::string_view();
}

// The norm before the MLP, and a norm behind attention, share a name in folders.
std::string_view layer_module(const Family& family, std::string_view ours) {
  const bool two_norms = family.output_norms || family.linear_attention;
  if (ours == "pre_feedforward_layernorm" || (ours == "post_attention_layernorm" && !two_norms)) {
    return "ffn_norm";
  }
  return file_module(kLayerModules, ours);
}

// The module's name in the file and the folder's leaf, "weight" or "bias".
struct ModulePlace {
  std::string_view module;
  std::optional<std::int64_t> layer;
  std::string_view leaf;
};

ModulePlace place_of(const ModelMetadata& model, std::string_view name) {
  const auto dot = name.rfind('.');
  const std::string_view path = name.substr(0, dot);
  const std::string_view leaf = dot == std::string_view::npos ? "" : name.substr(dot + 1);
  if (const auto layer = numbered_name(path, "model.layers.")) {
    return {layer_module(*model.family, layer->rest), layer->number, leaf};
  }
  return {file_module(kModelModules, path), std::nullopt, leaf};
}

// Biases that llama.cpp takes: every architecture's queries, keys and values, Llama's other layers.
bool may_have_bias(const Family& family, const ModulePlace& place) {
  constexpr std::array<std::string_view, 3> kAlways{"attn_q", "attn_k", "attn_v"};
  constexpr std::array<std::string_view, 4> kOfLlama{
      "attn_output", "ffn_gate", "ffn_up", "ffn_down"
  };
  return std::ranges::find(kAlways, place.module) != kAlways.end() ||
         (family.name == "llama" && std::ranges::find(kOfLlama, place.module) != kOfLlama.end());
}

// Modules of a layer that only some families have.
bool may_have_module(const Family& family, const ModulePlace& place) {
  const std::string_view module = place.module;
  const bool of_experts = module.ends_with("_exps") || module == "ffn_gate_inp";
  const bool of_mlp = module == "ffn_gate" || module == "ffn_up" || module == "ffn_down";
  const bool head_norm = module == "attn_q_norm" || module == "attn_k_norm";
  const bool output_norm = module == "post_ffw_norm";
  return (!of_experts || family.experts) && (!of_mlp || !family.experts) &&
         (!head_norm || !family.rotated_pairs) && (!output_norm || family.output_norms) &&
         (!module.starts_with("dense_") || family.bidirectional);
}

std::string_view without_scope(std::string_view name) {
  constexpr std::string_view kScope = "language_model.";
  return name.starts_with(kScope) ? name.substr(kScope.size()) : name;
}

bool is_left_out(const ModelMetadata& model, std::string_view name) {
  return name.find("rotary_emb.") != std::string_view::npos || models::is_of_images(name) ||
         name.starts_with("mtp.") || (model.is_tied && name == "lm_head.weight");
}

std::optional<FileTensor> delta_tensor(const ModelMetadata& model, std::string_view name) {
  constexpr std::string_view kDelta = "linear_attn.";
  const auto layer = numbered_name(name, "model.layers.");
  if (!model.family->linear_attention || !layer || !layer->rest.starts_with(kDelta) ||
      layer->number >= model.layers) {
    return std::nullopt;
  }
  auto found = find_delta_tensor(model.delta, layer->rest.substr(kDelta.size()));
  if (!found) {
    return std::nullopt;
  }
  found->role.name = std::string(name);
  return FileTensor{fmt::format("blk.{}.{}", layer->number, found->gguf), std::move(found->role)};
}

void expect_whole_heads(
    const TensorRole& role, std::int64_t size, std::int64_t heads_size, std::string_view of
) {
  require(
      size == heads_size,
      ErrorCode::kCorruptData,
      "tensor {} has {} {}, expected {} for its heads",
      quote(role.name),
      size,
      of,
      heads_size
  );
}

}  // namespace

std::optional<FileTensor> file_tensor(const ModelMetadata& model, std::string_view full_name) {
  const std::string_view name = without_scope(full_name);
  if (is_left_out(model, name) || is_left_out(model, full_name)) {
    return std::nullopt;
  }
  const Family& family = *model.family;
  if (auto tensor = delta_tensor(model, name)) {
    tensor->role.name = std::string(full_name);
    return tensor;
  }
  const ModulePlace place = place_of(model, name);
  const bool known =
      !place.module.empty() && may_have_module(family, place) &&
      (!place.layer || *place.layer < model.layers) &&
      (place.leaf == "weight" || (place.leaf == "bias" && may_have_bias(family, place)));
  require(
      known,
      ErrorCode::kUnsupported,
      "tensor {} is none that a GGUF file of architecture {} has",
      quote(full_name),
      family.name
  );
  FileTensor tensor{
      .name = place.layer ? fmt::format("blk.{}.{}.{}", *place.layer, place.module, place.leaf)
                          : fmt::format("{}.{}", place.module, place.leaf),
      .role = {.name = std::string(full_name)},
  };
  if (family.rotated_pairs && (place.module == "attn_q" || place.module == "attn_k")) {
    tensor.role.rotated_heads = place.module == "attn_q" ? model.heads : model.kv_heads;
  }
  tensor.role.plus_one = family.norms_plus_one && place.module.ends_with("norm");
  return tensor;
}

std::vector<std::int64_t> file_shape(
    const FileTensor& tensor, std::span<const std::int64_t> shape
) {
  const TensorRole& role = tensor.role;
  std::vector<std::int64_t> result(shape.begin(), shape.end());
  if (role.ends_in_one) {
    require(
        result.size() > 1 && result.back() == 1,
        ErrorCode::kCorruptData,
        "tensor {} has no last dimension of 1",
        quote(role.name)
    );
    result.pop_back();
  }
  require(
      !result.empty() && std::ranges::all_of(result, [](std::int64_t size) { return size > 0; }),
      ErrorCode::kCorruptData,
      "tensor {} is empty",
      quote(role.name)
  );
  if (role.rotated_heads != 0) {
    const std::int64_t pairs = std::int64_t{2} * role.rotated_heads;
    const std::int64_t whole = std::max(result.front() / pairs, std::int64_t{1}) * pairs;
    expect_whole_heads(role, result.front(), whole, "rows");
  }
  if (role.rows.moves()) {
    expect_whole_heads(role, result.front(), role.rows.total(), "rows");
  }
  if (role.columns.moves()) {
    expect_whole_heads(role, result.back(), role.columns.total(), "columns");
  }
  return result;
}

std::function<std::int64_t(std::int64_t)> folder_rows(
    const TensorRole& role, std::span<const std::int64_t> shape
) {
  if (role.rows.moves()) {
    // Rows of an outer dimension, all of which belong to the same head.
    std::int64_t inner = 1;
    for (std::size_t i = 1; i + 1 < shape.size(); ++i) {
      inner *= shape[i];
    }
    return [heads = reversed(role.rows), inner](std::int64_t row) {
      return heads.file_row(row / inner) * inner + row % inner;
    };
  }
  if (role.rotated_heads == 0) {
    return [](std::int64_t row) { return row; };
  }
  const std::int64_t head = shape.front() / role.rotated_heads;
  return [head](std::int64_t row) {
    const std::int64_t in_head = row % head;
    return row - in_head + in_head % 2 * (head / 2) + in_head / 2;
  };
}

ValueHeads reversed(const ValueHeads& heads) {
  ValueHeads back = heads;
  std::swap(back.key_heads, back.repeats);
  return back;
}

float file_value(const TensorRole& role, float value) {
  return role.is_decay ? -std::exp(value) : role.plus_one ? value + 1.0F : value;
}

}  // namespace saker::load::gguf
