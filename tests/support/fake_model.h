// SPDX-License-Identifier: Apache-2.0
#pragma once

// A model without weights, for tests of what runs models: the logits of a row are a hash of all
// tokens up to it, so any row that is run twice, skipped, or read from another sequence shows. Its
// caches hold token ids.

#include "saker/models/model.h"

#include <cstdint>
#include <vector>

namespace saker::testing {

struct FakeModelOptions {
  int vocab_size = 97;
  std::int64_t context_length = 4096;
  // > 0: caches that have more rows cannot be trimmed, as ring caches.
  int trim_window = 0;
  std::int32_t poison = -1;  // A pass with this token throws std::bad_alloc.
  float spread = 8.0F;       // Logits are uniform in [0, spread).
};

class FakeModel : public models::Model {
 public:
  explicit FakeModel(const FakeModelOptions& options = {});

  const models::ModelInfo& info() const override { return info_; }

  mx::array forward(const mx::array& ids, nn::ForwardContext& context) const override;

  const std::vector<nn::Module>& modules() const override { return modules_; }

  mx::array unembed(const mx::array& hidden, const nn::RowContext& adapters) const override;

  mx::array embed(const mx::array& ids) const override { return mx::zeros({ids.shape(0), 1}); }

  mx::array head_products(const mx::array& hidden) const override { return unembed(hidden, {}); }

  cache::SequenceCache make_cache(const models::CacheOptions& options) const override;
  std::size_t cache_bytes(std::int64_t depth, int kv_bits) const override;

  // The logits after these tokens.
  std::vector<float> logits(const std::vector<std::int32_t>& tokens) const;

  struct Pass {
    int spans = 0;
    int rows = 0;
  };

  // Of all passes so far; failed ones too.
  mutable std::vector<Pass> passes;
  // Rows of logits made at a time, at most.
  mutable int most_logit_rows = 0;

 private:
  std::vector<float> logits_of(std::uint64_t hash) const;

  FakeModelOptions options_;
  models::ModelInfo info_;
  std::vector<nn::Module> modules_;
};

}  // namespace saker::testing
