// SPDX-License-Identifier: Apache-2.0
#pragma once

// XXH64, a fast checksum against damage, not against adversaries
// (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md).

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace saker {

class Checksum {
 public:
  explicit Checksum(std::uint64_t seed = 0);

  void add(std::span<const std::byte> bytes);
  // The checksum of all bytes added so far.
  std::uint64_t value() const;

 private:
  static constexpr std::size_t kStripe = 32;

  void mix(const std::byte* stripe);

  std::uint64_t seed_;
  std::array<std::uint64_t, 4> lanes_;
  std::array<std::byte, kStripe> rest_{};
  std::size_t rest_size_ = 0;
  std::uint64_t total_ = 0;
};

std::uint64_t checksum(std::span<const std::byte> bytes);

}  // namespace saker
