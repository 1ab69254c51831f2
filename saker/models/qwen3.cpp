// SPDX-License-Identifier: Apache-2.0
// Qwen 3: pre-norm decoder, grouped-query attention with an RMS norm on every head's q and k,
// SwiGLU. Windows as in Qwen 2. Qwen3-Reranker's prompt is the one of its model card.
#include "saker/models/architecture.h"

namespace saker::models {
namespace {

constexpr RerankFormat kRerank{
    .prefix =
        "<|im_start|>system\nJudge whether the Document meets the requirements based on the "
        "Query and the Instruct provided. Note that the answer can only be \"yes\" or "
        "\"no\".<|im_end|>\n<|im_start|>user\n",
    .suffix = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
    .instruction = "Given a web search query, retrieve relevant passages that answer the query",
    .yes = "yes",
    .no = "no",
};

DecoderConfig read(const Json& json) {
  auto config = read_decoder_config(json, {.head_dim = 128});
  config.head_norms = true;
  config.rerank = &kRerank;
  set_late_windows(config, json);
  return config;
}

}  // namespace

Architecture qwen3() {
  return {.read = read, .build_layer = pre_norm_layer, .has_mtp_heads = true};
}

}  // namespace saker::models
