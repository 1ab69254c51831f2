// SPDX-License-Identifier: Apache-2.0
#include "saker/base/blake2b.h"

#include <fmt/ranges.h>
#include <saker_rs.h>

#include <array>
#include <cstdint>
#include <new>

namespace saker {

Blake2b::Blake2b() : hash_(saker_rs_blake2b_new(kDigestSize)) {
  if (hash_ == nullptr) {
    throw std::bad_alloc();
  }
}

void Blake2b::Free::operator()(SakerRsBlake2b* hash) const {
  saker_rs_blake2b_free(hash);
}

void Blake2b::add(std::span<const std::byte> bytes) {
  saker_rs_blake2b_add(
      hash_.get(), reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()
  );
}

void Blake2b::add(std::string_view text) {
  add(std::as_bytes(std::span(text.data(), text.size())));
}

std::string Blake2b::hex() const {
  std::array<std::uint8_t, kDigestSize> digest{};
  saker_rs_blake2b_digest(hash_.get(), digest.data());
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

}  // namespace saker
