// SPDX-License-Identifier: Apache-2.0
#pragma once

// What PEFT's adapter_config.json says that its tensors don't: the strength of each module's
// change, and whether we can run it. Fields of training only are skipped.

#include "saker/base/json.h"
#include "saker/text/pattern.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::adapters {

// A number per module. A key is a name or the end of one after a dot ("q_proj",
// "layers.0.mlp.up_proj"), or a regular expression for that: a key K is PEFT's `(.*\.)?(K)$`.
class ModuleNumbers {
 public:
  ModuleNumbers() = default;
  // `config[key]`, an object of numbers. Throws kUnsupported for regular expressions that we can't
  // run.
  ModuleNumbers(const Json& config, std::string_view key);

  // That of the first key which fits `module`, else `fallback`.
  double find(std::string_view module, double fallback) const;

 private:
  struct Entry {
    std::string name;
    std::optional<text::Pattern> pattern;  // None: `name` is one.
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

// Throws kUnsupported naming the field for what changes the model in a way that we don't run, and
// kCorruptData for values that nothing can mean.
PeftConfig read_peft_config(const Json& config);

}  // namespace saker::adapters
