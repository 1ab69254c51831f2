// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which tensors a decoder takes from a checkpoint, and how many inputs each of its weights has, by
// name alone: for programs that rewrite a checkpoint without building its model. The layers decide
// (decoder.cpp); a test compares the two for every architecture. A name may stand below any scope
// that a decoder's tensors can have ("model.", "language_model.model.", none). Immutable; any
// thread.

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

class TensorRoster {
 public:
  TensorRoster(const DecoderConfig& config, const RosterOptions& options);

  bool has(std::string_view tensor) const;
  // K of a module's weight [N, K]; none for norms and for modules that the decoder lacks.
  std::optional<int> columns(std::string_view module) const;

 private:
  std::map<std::string, int, std::less<>> modules_;  // Columns; 0: a norm.
};

// Of a configuration whose `model_type` is known, see detect.h. Throws as `check_config` does.
TensorRoster tensor_roster(const Json& config);

}  // namespace saker::models
