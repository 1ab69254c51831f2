// SPDX-License-Identifier: Apache-2.0
#pragma once

// BLAKE2b without a key (https://www.rfc-editor.org/rfc/rfc7693), with a digest of 16 bytes: names
// for contents, also where somebody would like two of them to have the same. One thread at a time.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct SakerRsBlake2b;

namespace saker {

class Blake2b {
 public:
  static constexpr std::size_t kDigestSize = 16;

  Blake2b();

  void add(std::span<const std::byte> bytes);
  void add(std::string_view text);

  // The digest of all that was added so far, as 32 lower-case hexadecimal digits.
  std::string hex() const;

 private:
  struct Free {
    void operator()(SakerRsBlake2b* hash) const;
  };

  std::unique_ptr<SakerRsBlake2b, Free> hash_;
};

}  // namespace saker
