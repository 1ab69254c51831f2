// SPDX-License-Identifier: Apache-2.0
#pragma once

// How often each token is among the last ones of a context that grows from call to call: only what
// came and what left is counted again. Any other change of the context is noticed, then all is.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace saker::sample {

class TokenCounts {
 public:
  // Counts the last `size` tokens of `context` (0: all of them); ids outside [0, vocab_size) are
  // left out.
  void follow(std::span<const std::int32_t> context, std::size_t size, std::size_t vocab_size);

  // The ids that were seen, once each, in any order.
  std::span<const std::size_t> ids() const { return ids_; }

  std::int32_t count(std::size_t id) const { return counts_[id]; }

 private:
  void add(std::int32_t token);
  void remove(std::int32_t token);
  void restart(std::size_t vocab_size);

  std::size_t context_size_ = 0;
  std::vector<std::int32_t> window_;  // What is counted.
  std::vector<std::int32_t> counts_;  // By id.
  std::vector<std::size_t> ids_;
};

}  // namespace saker::sample
