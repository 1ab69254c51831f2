// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a fuzz target is given, cut into parts: texts end with a zero byte, so that mutations that
// change the length of one part leave the others alone.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace saker::fuzz {

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size)
      : rest_(reinterpret_cast<const char*>(data), size) {}

  bool empty() const { return rest_.empty(); }

  // 0 at the end.
  unsigned byte() {
    const unsigned value = rest_.empty() ? 0U : static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(std::min<std::size_t>(1, rest_.size()));
    return value;
  }

  // Up to the next zero byte, or all that is left.
  std::string_view text() {
    const std::size_t end = std::min(rest_.find('\0'), rest_.size());
    const std::string_view part = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return part;
  }

  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

// Ends the program: a finding.
inline void expect(bool holds) {
  if (!holds) {
    std::abort();
  }
}

}  // namespace saker::fuzz
