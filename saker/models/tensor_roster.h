// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tensors that a model takes from a checkpoint, with their sizes, by name alone. For programs
// that rewrite or check a checkpoint without building its model. The layers decide (decoder.cpp); a
// test compares both for every architecture. A name may have any prefix that a decoder's tensors
// can have ("model.", "language_model.model.", none). Immutable; any thread.

#include "saker/base/json/json.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace saker::models {

struct DecoderConfig;
struct EncoderConfig;

struct RosterOptions {
  std::vector<std::string_view> stream_norms;  // Each layer's, see decoder.h.
  bool layer_scalars = false;
  bool mtp_head = false;
  bool next_layer = false;  // A head in the layer behind the last one may be there.
};

// A module of the roster: a linear layer, an embedding, a norm (a layer norm may have a bias), a
// single tensor, or a linear layer whose size only its tensor says.
struct RosterModule {
  enum class Kind { kLinear, kNorm, kLayerNorm, kTensor, kAnyLinear };

  Kind kind = Kind::kLinear;
  int columns = 0;  // K of a linear layer's weight [N, K].
  int rows = 0;     // N, or the size of a norm; 0: unknown.
  int experts = 0;  // Weights stacked or one by one; 0: a single weight.
  bool is_required = true;
  std::string_view fused = {};  // The module beside it that may hold it instead; empty: none.
  bool turned = false;          // Fused experts are [E, K, N].
};

class TensorRoster {
 public:
  TensorRoster(const DecoderConfig& config, const RosterOptions& options);
  explicit TensorRoster(const EncoderConfig& config);

  bool has(std::string_view tensor) const;
  // K of a module's weight [N, K]; none for norms and for modules that the decoder lacks.
  std::optional<int> columns(std::string_view module) const;

  using Modules = std::map<std::string, RosterModule, std::less<>>;

  const Modules& modules() const { return modules_; }

 private:
  Modules modules_;
};

// The roster's name of a tensor or module: without "model." and similar prefixes, single experts as
// their stack, the token table under its usual name.
std::string roster_name(std::string_view name);

// For a configuration with a known `model_type`, see detect.h. Throws as `check_config` does.
TensorRoster tensor_roster(const Json& config);

// True for tensors of an EmbeddingHead, which lie beside the decoder's scope.
bool is_of_embedding_head(std::string_view tensor);

}  // namespace saker::models
