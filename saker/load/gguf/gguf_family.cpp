// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_family.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

namespace saker::load::gguf {
namespace {

constexpr std::string_view kGelu = "gelu_pytorch_tanh";

constexpr std::array<Family, 9> kFamilies{{
    {.name = "llama", .model_type = "llama", .rotated_pairs = true},
    {.name = "qwen2", .model_type = "qwen2"},
    {.name = "qwen3", .model_type = "qwen3"},
    {.name = "qwen35", .model_type = "qwen3_5", .linear_attention = true},
    {.name = "qwen3moe", .model_type = "qwen3_moe", .experts = true},
    {.name = "gemma", .model_type = "gemma", .activation = kGelu, .norms_plus_one = true},
    {.name = "gemma2",
     .model_type = "gemma2",
     .activation = kGelu,
     .norms_plus_one = true,
     .output_norms = true,
     .softcaps = true,
     .windows = true,
     .widest_layers = 46},
    {.name = "gemma3",
     .model_type = "gemma3_text",
     .activation = kGelu,
     .norms_plus_one = true,
     .output_norms = true,
     .windows = true,
     .widest_layers = 62,
     .window_pattern = 6},
    {.name = "gemma-embedding",
     .model_type = "gemma3_text",
     .activation = kGelu,
     .norms_plus_one = true,
     .output_norms = true,
     .windows = true,
     .widest_layers = 62,
     .window_pattern = 6,
     .bidirectional = true},
}};

}  // namespace

const Family& family_of(const Header& header) {
  const auto name = header.string("general.architecture");
  require(
      name.has_value(),
      ErrorCode::kCorruptData,
      "{}: 'general.architecture' is missing",
      header.what()
  );
  const auto* found = std::ranges::find(kFamilies, *name, &Family::name);
  std::string known;
  for (const Family& family : kFamilies) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", family.name);
  }
  require(
      found != kFamilies.end(),
      ErrorCode::kUnsupported,
      "{}: architecture {}, expected one of {}",
      header.what(),
      quote(*name),
      known
  );
  return *found;
}

}  // namespace saker::load::gguf
