// SPDX-License-Identifier: Apache-2.0
#pragma once

// Settings of PEFT's adapter_config.json that the tensors do not show: the strength of each
// module's change, and features that we may not support. Fields that concern only training are
// skipped.

#include "saker/base/json/json.h"
#include "saker/text/pattern.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::adapters {

// A number per module. A key is a name or its end after a dot ("q_proj", "layers.0.mlp.up_proj"),
// or a regular expression for such: a key K is PEFT's `(.*\.)?(K)$`.
class ModuleNumbers {
 public:
  ModuleNumbers() = default;
  // Reads `config[key]`, an object of numbers. Throws kUnsupported for regular expressions that we
  // can't run.
  ModuleNumbers(const Json& config, std::string_view key);

  // The number of the first key that matches `module`, else `fallback`.
  double find(std::string_view module, double fallback) const;

 private:
  struct Entry {
    std::string name;
    std::optional<text::Pattern> pattern;  // Empty: match by `name`.
    double value = 0.0;

    bool fits(std::string_view module) const;
  };

  std::vector<Entry> entries_;
};

struct PeftConfig {
  std::int64_t default_rank = 8;
  double default_alpha = 8.0;
  bool rank_stabilized = false;  // alpha / sqrt(r) (https://arxiv.org/abs/2312.03732).
  bool dora = false;
  ModuleNumbers ranks;
  ModuleNumbers alphas;

  std::int64_t rank(std::string_view module) const;
  float scale(std::string_view module) const;
};

// Throws kUnsupported, naming the field, for changes of the model that we don't support, and
// kCorruptData for invalid values.
PeftConfig read_peft_config(const Json& config);

}  // namespace saker::adapters
