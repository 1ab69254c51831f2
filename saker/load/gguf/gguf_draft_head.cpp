// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_draft_head.h"

#include "saker/load/gguf/gguf_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace saker::load::gguf {
namespace {

constexpr std::array<ModuleNames, 4> kHeadModules = {{
    {"nextn.eh_proj", "mtp.fc"},
    {"nextn.enorm", "mtp.pre_fc_norm_embedding"},
    {"nextn.hnorm", "mtp.pre_fc_norm_hidden"},
    {"nextn.shared_head_norm", "mtp.norm"},
}};

}  // namespace

std::optional<std::int64_t> draft_head_layer(const Keys& keys, std::int64_t block) {
  const std::int64_t layers = layer_count(keys);
  const bool is_of_head = block >= layers && block < keys.required("block_count");
  return is_of_head ? std::optional(block - layers) : std::nullopt;
}

std::optional<std::string> draft_head_path(std::int64_t layer, std::string_view part) {
  const auto* found = std::ranges::find(kHeadModules, part, &ModuleNames::gguf);
  // Several layers have one input and one output.
  return layer == 0 && found != kHeadModules.end() ? std::optional(std::string(found->ours))
                                                   : std::nullopt;
}

void add_draft_head(const Header& header, const Keys& keys, Json& config) {
  const std::int64_t first = layer_count(keys);
  const std::string join = fmt::format("blk.{}.{}.weight", first, kHeadModules.front().gguf);
  if (std::ranges::find(header.tensors, join, &TensorEntry::name) != header.tensors.end()) {
    config["mtp_num_hidden_layers"] = keys.required("block_count") - first;
  }
}

}  // namespace saker::load::gguf
