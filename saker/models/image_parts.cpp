// SPDX-License-Identifier: Apache-2.0
#include "saker/models/image_parts.h"

#include <algorithm>
#include <array>

namespace saker::models {
namespace {

constexpr std::array<std::string_view, 15> kParts = {
    "audio_encoder",
    "audio_tower",
    "embed_audio",
    "embed_vision",
    "image_newline",
    "mm_projector",
    "multi_modal_adapter",
    "multi_modal_projector",
    "patch_merger",
    "vision_embed_tokens",
    "vision_embedder",
    "vision_encoder",
    "vision_model",
    "vision_tower",
    "visual",
};

}  // namespace

bool is_of_images(std::string_view name) {
  constexpr std::string_view kModel = "model.";
  while (name.starts_with(kModel)) {
    name.remove_prefix(kModel.size());
  }
  const std::string_view part = name.substr(0, name.find('.'));
  return std::ranges::find(kParts, part) != kParts.end();
}

}  // namespace saker::models
