// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which tensors a decoder takes from a checkpoint, and their sizes, by name alone: for programs
// that rewrite or judge a checkpoint without building its model. The layers decide (decoder.cpp); a
// test compares the two for every architecture. A name may stand below any scope that a decoder's
// tensors can have ("model.", "language_model.model.", none). Immutable; any thread.

#include "saker/base/json.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace saker::models {

struct DecoderConfig;

struct RosterOptions {
  bool output_norms = false;  // Attention and MLP have a norm behind them, see decoder.h.
  bool layer_scalars = false;
  bool mtp_head = false;
};

// A module of the roster: a linear layer, an embedding, a norm, or a tensor by itself.
struct RosterModule {
  enum class Kind { kLinear, kNorm, kTensor };

  Kind kind = Kind::kLinear;
  int columns = 0;  // K of a linear layer's weight [N, K].
  int rows = 0;     // N, or the size of a norm; 0: not known here.
  int experts = 0;  // Weights that are stacked, or as many single ones; 0: one weight.
  bool is_required = true;
};

class TensorRoster {
 public:
  TensorRoster(const DecoderConfig& config, const RosterOptions& options);

  bool has(std::string_view tensor) const;
  // K of a module's weight [N, K]; none for norms and for modules that the decoder lacks.
  std::optional<int> columns(std::string_view module) const;

  using Modules = std::map<std::string, RosterModule, std::less<>>;

  const Modules& modules() const { return modules_; }

 private:
  Modules modules_;
};

// A tensor's or module's name below the decoder's scope, as the roster has it: "model." and the
// like taken away, single experts as their stack, the token table under its usual name.
std::string roster_name(std::string_view name);

// Of a configuration whose `model_type` is known, see detect.h. Throws as `check_config` does.
TensorRoster tensor_roster(const Json& config);

}  // namespace saker::models
