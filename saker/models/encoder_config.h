// SPDX-License-Identifier: Apache-2.0
#pragma once

// The common part of encoder configurations, read and checked once, and the names of an encoder's
// tensors. Errors name the field and its value.

#include "saker/base/json/json.h"
#include "saker/kernels/ops/activation.h"
#include "saker/models/classifier.h"
#include "saker/models/embedding_config.h"
#include "saker/models/tensor_rules.h"
#include "saker/nn/rope_options.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace saker::models {

// Scopes of an encoder's tensors; those of layers below the layer's. An empty one: there is none.
struct EncoderNames {
  std::vector<std::string_view> bodies;  // Where the encoder may lie, beside the top.
  std::string_view words;
  std::string_view positions = {};
  std::string_view types = {};
  std::string_view input_norm;
  std::string_view layers;
  std::vector<std::string_view> attention_inputs;  // q, k and v, in one layer or three.
  std::string_view attention_output;
  std::string_view attention_norm;
  std::vector<std::string_view> mlp_inputs;  // Gates before ups.
  std::string_view mlp_output;
  std::string_view mlp_norm;
  std::string_view final_norm = {};
};

struct EncoderLayerConfig {
  int window = 0;        // A token sees those less than this far away; 0: all.
  std::size_t rope = 0;  // Index in EncoderConfig::ropes.
};

struct EncoderConfig {
  std::string model_type;
  int hidden = 0;
  int intermediate = 0;
  int heads = 0;
  int head_dim = 0;
  int vocab_size = 0;
  std::int64_t context_length = 0;
  int position_count = 0;  // Rows of the table of positions; 0: there is none.
  int first_position = 0;  // The row of a text's first token.
  int type_count = 0;      // Types of tokens; 0: there are none.
  float norm_eps = 1e-12F;
  kernels::Activation activation = kernels::Activation::kGelu;
  bool gated = false;  // The MLPs.
  // Norms before attention and MLP; the first layer has none before its attention. Otherwise each
  // norm follows its part (nn/stack/encoder_layer.h).
  bool pre_norm = false;
  std::vector<nn::RopeOptions> ropes;  // Empty: heads are not rotated.
  std::vector<EncoderLayerConfig> layers;
  EmbeddingConfig embedding;  // Without a section in the file: the mean, of unit length.
  ClassifierLayout classifier;
  EncoderNames names;
};

// An encoder, beside the decoders of architecture.h. `read` throws kUnsupported or kCorruptData
// naming field and value.
struct EncoderArchitecture {
  EncoderConfig (*read)(const Json& config) = nullptr;
  TensorRules tensors = {};
};

EncoderArchitecture bert();
EncoderArchitecture roberta();
EncoderArchitecture nomic_bert();
EncoderArchitecture modernbert();

// The keys under which an architecture has the common fields, and what is assumed without them.
struct EncoderKeys {
  std::string_view hidden = "hidden_size";
  std::string_view intermediate = "intermediate_size";
  std::string_view layers = "num_hidden_layers";
  std::string_view heads = "num_attention_heads";
  std::string_view context = "max_position_embeddings";
  std::string_view activation = "hidden_act";
  std::string_view norm_eps = "layer_norm_eps";
  double default_eps = 1e-12;
};

// All but positions, types, ropes, the classifier and the names.
EncoderConfig read_encoder_config(const Json& config, const EncoderKeys& keys);

// `type_vocab_size`, 2 if it is absent.
int read_type_count(const Json& config);

// Throws kUnsupported unless the field is absent, null or this value.
void require_value(const Json& config, std::string_view key, const Json& expected);

}  // namespace saker::models
