// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_linear_attention.h"

#include "saker/base/numbered_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace saker::load::gguf {
namespace {

DeltaSizes sizes_of(const Keys& keys) {
  DeltaSizes sizes = {
      .key_heads = keys.required_size("ssm.group_count"),
      .value_heads = keys.required_size("ssm.time_step_rank"),
      .key_dim = keys.required_size("ssm.state_size"),
      .value_dim = 0,
  };
  keys.expect(
      sizes.value_heads % sizes.key_heads == 0,
      "ssm.time_step_rank",
      fmt::format("{}", sizes.value_heads),
      fmt::format("a multiple of the {} key heads", sizes.key_heads)
  );
  const std::int64_t inner = keys.required("ssm.inner_size");
  keys.expect(
      inner > 0 && inner % sizes.value_heads == 0,
      "ssm.inner_size",
      fmt::format("{}", inner),
      fmt::format("a multiple of the {} value heads", sizes.value_heads)
  );
  sizes.value_dim = keys.checked_size("ssm.inner_size", inner / sizes.value_heads);
  return sizes;
}

// In which order a tensor has value heads.
enum class HeadOrder : std::uint8_t {
  kNone,
  kNumbers,  // A number, or row, for each head.
  kRows,     // The rows of a head's values.
  kMixed,    // As kRows, behind queries and keys.
  kColumns,
};

struct LayerTensor {
  std::string_view gguf;
  std::string_view ours;
  HeadOrder order;
};

constexpr std::array<LayerTensor, 11> kTensors = {{
    {"attn_qkv.weight", "in_proj_qkv.weight", HeadOrder::kMixed},
    {"attn_gate.weight", "in_proj_z.weight", HeadOrder::kRows},
    {"ssm_beta.weight", "in_proj_b.weight", HeadOrder::kNumbers},
    {"ssm_alpha.weight", "in_proj_a.weight", HeadOrder::kNumbers},
    {"ssm_ba.weight", "in_proj_ba.weight", HeadOrder::kNone},  // Each key head's in turn.
    {"ssm_conv1d.weight", "conv1d.weight", HeadOrder::kMixed},
    {"ssm_a", "A_log", HeadOrder::kNumbers},
    {"ssm_dt.bias", "dt_bias", HeadOrder::kNumbers},
    {"ssm_dt", "dt_bias", HeadOrder::kNumbers},  // ollama's name.
    {"ssm_norm.weight", "norm.weight", HeadOrder::kNone},
    {"ssm_out.weight", "out_proj.weight", HeadOrder::kColumns},
}};

ValueHeads heads_of(const DeltaSizes& sizes, std::int64_t first, std::int64_t size) {
  if (sizes.key_heads == sizes.value_heads) {
    return {};  // One each: both orders are the same.
  }
  return {
      .key_heads = static_cast<int>(sizes.key_heads),
      .repeats = static_cast<int>(sizes.value_heads / sizes.key_heads),
      .first = first,
      .size = size,
  };
}

// Without its name.
TensorRole delta_role(const LayerTensor& part, const DeltaSizes& sizes) {
  TensorRole role;
  role.is_decay = part.ours == "A_log";
  role.ends_in_one = part.ours == "conv1d.weight";
  switch (part.order) {
    case HeadOrder::kNumbers:
      role.rows = heads_of(sizes, 0, 1);
      break;
    case HeadOrder::kRows:
      role.rows = heads_of(sizes, 0, sizes.value_dim);
      break;
    case HeadOrder::kMixed:
      role.rows = heads_of(sizes, 2 * sizes.key_heads * sizes.key_dim, sizes.value_dim);
      break;
    case HeadOrder::kColumns:
      role.columns = heads_of(sizes, 0, sizes.value_dim);
      break;
    default:
      break;
  }
  return role;
}

}  // namespace

std::int64_t ValueHeads::file_row(std::int64_t row) const {
  if (row < first) {
    return row;
  }
  const std::int64_t head = (row - first) / size;
  const std::int64_t file_head = head % repeats * key_heads + head / repeats;
  return first + file_head * size + (row - first) % size;
}

void ValueHeads::move_columns(std::span<std::byte> row, std::vector<std::byte>& scratch) const {
  scratch.assign(row.begin(), row.end());
  const auto heads = static_cast<std::size_t>(key_heads) * static_cast<std::size_t>(repeats);
  const std::size_t bytes = row.size() / heads;
  for (std::size_t head = 0; head < heads; ++head) {
    const std::size_t from =
        head % static_cast<std::size_t>(repeats) * static_cast<std::size_t>(key_heads) +
        head / static_cast<std::size_t>(repeats);
    std::memcpy(row.data() + head * bytes, scratch.data() + from * bytes, bytes);
  }
}

void add_linear_attention(const Header& header, const Keys& keys, Json& config) {
  const DeltaSizes sizes = sizes_of(keys);
  config["linear_num_key_heads"] = sizes.key_heads;
  config["linear_num_value_heads"] = sizes.value_heads;
  config["linear_key_head_dim"] = sizes.key_dim;
  config["linear_value_head_dim"] = sizes.value_dim;
  config["linear_conv_kernel_dim"] = keys.required("ssm.conv_kernel");
  config["full_attention_interval"] = keys.integer("full_attention_interval").value_or(4);
  const std::string recurrent = keys.full("attention.recurrent_layers");
  if (header.is_array(recurrent)) {
    auto flags = header.booleans(recurrent);
    flags.resize(std::min(flags.size(), static_cast<std::size_t>(layer_count(keys))));
    for (const bool is_linear : flags) {
      config["layer_types"].push_back(is_linear ? "linear_attention" : "full_attention");
    }
  }
  const auto head_dim = config["head_dim"].get<std::int64_t>();
  const auto rotated = keys.integer("rope.dimension_count").value_or(head_dim / 4);
  keys.expect(
      rotated > 0 && rotated <= head_dim,
      "rope.dimension_count",
      fmt::format("{}", rotated),
      fmt::format("a number from 1 to a head's {}", head_dim)
  );
  config["partial_rotary_factor"] = static_cast<double>(rotated) / static_cast<double>(head_dim);
}

std::optional<TensorRole> linear_attention_role(
    const Family& family, const Keys& keys, std::string_view name
) {
  const auto layer = numbered_name(name, "blk.");
  const auto* part = layer && layer->number < layer_count(keys)
                         ? std::ranges::find(kTensors, layer->rest, &LayerTensor::gguf)
                         : kTensors.end();
  if (part == kTensors.end()) {
    return std::nullopt;
  }
  TensorRole role = delta_role(*part, sizes_of(keys));
  if (family.heads_in_order) {
    role.rows = {};
    role.columns = {};
  }
  role.name = fmt::format("model.layers.{}.linear_attn.{}", layer->number, part->ours);
  return role;
}

std::optional<DeltaTensor> find_delta_tensor(const DeltaSizes& sizes, std::string_view ours) {
  const auto* part = std::ranges::find(kTensors, ours, &LayerTensor::ours);
  return part != kTensors.end() ? std::optional(DeltaTensor{part->gguf, delta_role(*part, sizes)})
                                : std::nullopt;
}

}  // namespace saker::load::gguf
