// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts a model's configuration to a GGUF file's metadata, the inverse of gguf_config.h, with
// the keys and types of llama.cpp's convert_hf_to_gguf.py (conversion/*.py). Models with features
// that such files cannot describe are refused. Pure; any thread.

#include "saker/base/json/json.h"
#include "saker/load/export/gguf_metadata.h"
#include "saker/load/gguf/gguf_family.h"
#include "saker/load/gguf/gguf_linear_attention.h"

#include <cstdint>
#include <string>
#include <vector>

namespace saker::load::gguf {

// A layer behind pooling, "dense.0" or "dense.1" of a folder.
struct DenseSize {
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
};

// Facts that a configuration does not have.
struct ModelFacts {
  std::string name;  // For people; empty: unknown.
  std::vector<DenseSize> dense = {};
};

struct ModelMetadata {
  const Family* family = nullptr;
  // Without general.file_type and general.quantization_version, which depend on the tensors.
  Metadata pairs;
  std::vector<float> rope_factors;  // The tensor rope_freqs.weight [head_dim / 2]; empty: none.
  // For file_tensors.h and vocabulary_metadata.h.
  int heads = 0;
  int kv_heads = 0;
  int layers = 0;
  int vocab_size = 0;
  bool is_tied = false;   // The head is the embedding: the file has no output.weight.
  DeltaSizes delta = {};  // For linear attention.
};

// `config` has a known `model_type` (models/detect.h). Absent fields have the defaults of our
// models. Throws kUnsupported, naming the field, for models that GGUF files cannot describe, and
// kCorruptData as the model's own checks do.
ModelMetadata model_metadata(const Json& config, const ModelFacts& facts = {});

}  // namespace saker::load::gguf
