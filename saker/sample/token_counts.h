// SPDX-License-Identifier: Apache-2.0
#pragma once

// Counts of each token among the last ones of a context that grows from call to call. Only tokens
// that enter or leave the window are counted. After any other change of the context, which is
// noticed, all are.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace saker::sample {

class TokenCounts {
 public:
  // Counts the last `size` tokens of `context` (0: all of them), except ids outside [0,
  // vocab_size).
  void follow(std::span<const std::int32_t> context, std::size_t size, std::size_t vocab_size);

  // The counted ids, once each, in any order.
  std::span<const std::size_t> ids() const { return ids_; }

  std::int32_t count(std::size_t id) const { return counts_[id]; }

 private:
  void add(std::int32_t token);
  void remove(std::int32_t token);
  void restart(std::size_t vocab_size);

  std::size_t context_size_ = 0;
  std::vector<std::int32_t> window_;  // The counted tokens.
  std::vector<std::int32_t> counts_;  // By id.
  std::vector<std::size_t> ids_;
};

}  // namespace saker::sample
