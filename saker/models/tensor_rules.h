// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rules of an architecture about the tensors of its checkpoints, for code that loads or rewrites
// models. An architecture sets those in which it differs from the others. Pure; any thread.

#include "saker/base/json/json.h"
#include "saker/base/tensor.h"
#include "saker/kernels/layout/weight_format.h"
#include "saker/nn/mlp_names.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::models {

using TensorMap = std::map<std::string, Tensor, std::less<>>;

// A tensor of mlx-lm's model, made of a checkpoint's tensor with the same name.
struct SanitizedTensor {
  std::vector<std::int64_t> shape;  // For the same bytes.
  float offset = 0.0F;              // Is added to every element, in the tensor's own dtype.
};

// Rows are multiplied by these, each rounded to the tensor's dtype.
struct RowFactors {
  float all = 1.0F;
  std::vector<float> rows = {};  // One for each row; empty: none.

  bool is_one() const { return all == 1.0F && rows.empty(); }
};

// Rows of `kv_b_proj` by head (see nn::LatentOptions): those of the keys, then those of the values.
struct LatentRows {
  int heads = 0;  // 0: the tensor is not split.
  int keys = 0;
  int values = 0;
};

struct TensorRules {
  // True for tensors that checkpoints may have and the model never reads.
  bool (*is_unread)(std::string_view name, const Json& config) = [](std::string_view, const Json&) {
    return false;
  };

  // True for tensors of a head that drafts tokens, besides those under "mtp.".
  bool (*is_of_draft_head)(std::string_view name, const Json& config) =
      [](std::string_view, const Json&) { return false; };

  // The scope that mlx-lm's model has around all tensors but the MTP head's, with its dot.
  std::string_view (*mlx_scope)(const Json& config) = [](const Json&) {
    return std::string_view();
  };

  // True for checkpoints as they are published, if mlx-lm's model has other values.
  bool (*needs_sanitizing)(const TensorMap& tensors) = [](const TensorMap&) { return false; };
  // A tensor of such a checkpoint.
  SanitizedTensor (*sanitized)(std::string_view name, std::vector<std::int64_t> shape) =
      [](std::string_view, std::vector<std::int64_t> shape) {
        return SanitizedTensor{.shape = std::move(shape)};
      };

  // Numbers that mlx-lm's model has in the rows of such a checkpoint's tensor.
  RowFactors (*row_factors)(std::string_view name, const Json& config) =
      [](std::string_view, const Json&) { return RowFactors(); };

  // The name of a tensor in mlx-lm's model, without that scope; several: of equal parts of its
  // rows.
  std::vector<std::string> (*mlx_names)(std::string_view name, const Json& config) =
      [](std::string_view name, const Json&) { return std::vector{std::string(name)}; };

  // Names of experts, which mlx-lm's model has stacked.
  nn::MoeNames experts = {};

  // How mlx-lm's model splits `kv_b_proj` into `embed_q` and `unembed_out`.
  LatentRows (*latent_rows)(const Json& config) = [](const Json&) { return LatentRows(); };

  // True for tensors that keep their dtype, whatever the others become.
  bool (*keeps_dtype)(std::string_view name) = [](std::string_view) { return false; };

  // True for modules that stay floats in quantized models: mlx-lm's have bare arrays for them.
  bool (*stays_float)(std::string_view module) = [](std::string_view) { return false; };

  // As above, for modules of some layers.
  bool (*stays_float_there)(std::string_view module, const Json& config) =
      [](std::string_view, const Json&) { return false; };

  // The format of a module that has one of its own in quantized models; none: the others' format.
  std::optional<kernels::WeightFormat> (*own_format)(std::string_view module
  ) = [](std::string_view) -> std::optional<kernels::WeightFormat> { return std::nullopt; };
};

// The rules for a `model_type` of a model or an assistant; the default ones for any other.
TensorRules tensor_rules(const Json& config);

// True if the head is the embedding, whatever `tie_word_embeddings` says.
bool is_always_tied(std::string_view model_type);

}  // namespace saker::models
