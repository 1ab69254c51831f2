// SPDX-License-Identifier: Apache-2.0
#pragma once

// Counts of tokens of one answer, over all its choices.

#include "saker/base/json/json.h"
#include "saker/engine/result.h"

#include <vector>

namespace saker::server::openai {

class Usage {
 public:
  // Counts a choice's end. `prompt`: the number of its prompt, since choices of one prompt share it.
  void add(const engine::GenerateResult& result, std::size_t prompt);

  // Counts tokens before the end, for chunks that have counts.
  void add_token() { ++seen_; }

  Json json() const;

 private:
  struct PromptCount {
    int tokens = 0;
    int cached = 0;
  };

  std::vector<PromptCount> prompts_;
  int tokens_ = 0;
  int seen_ = 0;
  int reasoning_ = 0;
  int drafted_ = 0;
  int accepted_ = 0;
};

}  // namespace saker::server::openai
