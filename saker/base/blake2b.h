// SPDX-License-Identifier: Apache-2.0
#pragma once

// BLAKE2b without a key (https://www.rfc-editor.org/rfc/rfc7693) and with a 16-byte digest. It
// names contents, even where an adversary wants two of them to collide. One thread at a time.

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

  // The digest of everything added so far, as 32 lower-case hexadecimal digits.
  std::string hex() const;

 private:
  struct Free {
    void operator()(SakerRsBlake2b* hash) const;
  };

  std::unique_ptr<SakerRsBlake2b, Free> hash_;
};

}  // namespace saker
