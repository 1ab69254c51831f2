// SPDX-License-Identifier: Apache-2.0
#pragma once

// The architectures that we run, one file each. Each defines its checked configuration and its
// layer.

#include "saker/models/decoder.h"
#include "saker/models/tensor_rules.h"

#include <optional>

namespace saker::models {

// `read` throws kUnsupported or kCorruptData naming field and value.
struct Architecture {
  DecoderConfig (*read)(const Json& config) = nullptr;
  LayerBuilder build_layer = nullptr;
  // Optional: completes the configuration from tensors; `body` is the decoder's scope.
  void (*adjust)(DecoderConfig& config, const nn::Weights& body) = nullptr;
  bool has_mtp_heads = false;      // Checkpoints may have a head as in mtp.h.
  bool has_next_layers = false;    // As above, in the layer behind the last one.
  bool has_layer_scalars = false;  // Layers may have a tensor `layer_scalar`.
  bool always_tied = false;        // The head is the embedding, whatever the configuration says.
  TensorRules tensors = {};
  // Optional: as `read`, for an assistant (see assistant.h) whose layers are of this architecture.
  DecoderConfig (*read_assistant)(const Json& config) = nullptr;
};

// The architecture of an assistant's layers, by its `model_type`; none: it is no assistant.
std::optional<Architecture> assistant_architecture(const Json& config);

Architecture generic();
Architecture afmoe();
Architecture apertus();
Architecture falcon_h1();
Architecture laguna();
Architecture llama4();
Architecture mimo();
Architecture llama();
Architecture mistral();
Architecture mistral4();
Architecture qwen2();
Architecture qwen2_moe();
Architecture qwen3();
Architecture qwen3_5();
Architecture qwen3_5_moe();
Architecture qwen3_moe();
Architecture qwen3_next();
Architecture gemma();
Architecture gemma2();
Architecture gemma3();
Architecture gemma4();
Architecture cohere2();
Architecture deepseek_v2();
Architecture deepseek_v3();
Architecture cohere2_moe();
Architecture dots1();
Architecture ernie4_5();
Architecture ernie4_5_moe();
Architecture exaone4();
Architecture glm4_moe_lite();
Architecture glm4_moe();
Architecture gpt_oss();
Architecture granite();
Architecture granitemoe();
Architecture granitemoehybrid();
Architecture hunyuan_v1_dense();
Architecture hunyuan_v1_moe();
Architecture bailing_hybrid();
Architecture bailing_moe();
Architecture kimi_linear();
Architecture lfm2();
Architecture lfm2_moe();
Architecture minimax_m2();
Architecture ministral3();
Architecture mixtral();
Architecture nemotron_h();
Architecture olmo2();
Architecture olmo3();
Architecture olmoe();
Architecture phi3();
Architecture qwen3_vl();
Architecture qwen3_vl_moe();
Architecture seed_oss();
Architecture smollm3();

}  // namespace saker::models
