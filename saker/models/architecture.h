// SPDX-License-Identifier: Apache-2.0
#pragma once

// The architectures that we run, one file each. Every one gives its checked configuration and the
// layer that it is made of.

#include "saker/models/decoder.h"

namespace saker::models {

// `read` throws kUnsupported or kCorruptData naming field and value.
struct Architecture {
  DecoderConfig (*read)(const Json& config) = nullptr;
  LayerBuilder build_layer = nullptr;
  // Optional: what only the tensors tell, `body` being the scope of the decoder's.
  void (*adjust)(DecoderConfig& config, const nn::Weights& body) = nullptr;
  bool has_mtp_heads = false;      // Checkpoints may bring a head as in mtp.h.
  bool has_layer_scalars = false;  // Layers may have a tensor `layer_scalar`.
};

Architecture generic();
Architecture llama();
Architecture mistral();
Architecture qwen2();
Architecture qwen3();
Architecture qwen3_5();
Architecture qwen3_moe();
Architecture gemma();
Architecture gemma2();
Architecture gemma3();
Architecture gemma4();

}  // namespace saker::models
