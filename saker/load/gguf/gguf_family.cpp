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

constexpr std::array<Family, 25> kFamilies{{
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
    {.name = "gemma4",
     .model_type = "gemma4_text",
     .activation = kGelu,
     .output_norms = true,
     .windows = true,
     .two_kinds = true},
    {.name = "gemma-embedding",
     .model_type = "gemma3_text",
     .activation = kGelu,
     .norms_plus_one = true,
     .output_norms = true,
     .windows = true,
     .widest_layers = 62,
     .window_pattern = 6,
     .bidirectional = true},
    {.name = "smollm3", .model_type = "smollm3", .rotated_pairs = true},
    {.name = "granite", .model_type = "granite", .rotated_pairs = true, .factors = true},
    {.name = "granitehybrid",
     .model_type = "granitemoehybrid",
     .rotated_pairs = true,
     .kinds = LayerKinds::kStateSpaces,
     .factors = true},
    {.name = "lfm2", .model_type = "lfm2", .kinds = LayerKinds::kConvolutions},
    {.name = "lfm2moe",
     .model_type = "lfm2_moe",
     .experts = true,
     .kinds = LayerKinds::kConvolutions},
    {.name = "nemotron_h", .model_type = "nemotron_h", .kinds = LayerKinds::kSingleParts},
    {.name = "nemotron_h_moe",
     .model_type = "nemotron_h",
     .experts = true,
     .kinds = LayerKinds::kSingleParts},
    {.name = "mistral3", .model_type = "ministral3", .rotated_pairs = true, .scaled_queries = true},
    {.name = "olmo2", .model_type = "olmo2", .output_norms = true, .windowed_type = "olmo3"},
    {.name = "phi3", .model_type = "phi3", .joined = true, .windowed_type = "phi3"},
    {.name = "cohere2",
     .model_type = "cohere2",
     .windows = true,
     .layer_norms = true,
     .scaled_logits = true},
    {.name = "qwen3vl", .model_type = "qwen3_vl"},
    {.name = "seed_oss", .model_type = "seed_oss"},
    {.name = "exaone4", .model_type = "exaone4", .output_norms = true, .windowed_type = "exaone4"},
    {.name = "ernie4_5", .model_type = "ernie4_5"},
}};

// "gemma3" for gemma3_text, "llama" for models that llama.cpp calls so.
std::string_view plain_type(std::string_view model_type) {
  for (const std::string_view suffix : {"_text", "_unified"}) {
    if (model_type.ends_with(suffix)) {
      model_type.remove_suffix(suffix.size());
    }
  }
  return model_type == "mistral" ? "llama" : model_type;
}

}  // namespace

std::span<const Family> families() {
  return kFamilies;
}

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

bool are_relatives(std::string_view family_type, std::string_view model_type) {
  return model_type == "generic" || plain_type(family_type) == plain_type(model_type);
}

}  // namespace saker::load::gguf
