// SPDX-License-Identifier: Apache-2.0
#include "saker/base/checksum.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace saker {
namespace {

constexpr std::uint64_t kPrime1 = 0x9e3779b185ebca87U;
constexpr std::uint64_t kPrime2 = 0xc2b2ae3d27d4eb4fU;
constexpr std::uint64_t kPrime3 = 0x165667b19e3779f9U;
constexpr std::uint64_t kPrime4 = 0x85ebca77c2b2ae63U;
constexpr std::uint64_t kPrime5 = 0x27d4eb2f165667c5U;

static_assert(std::endian::native == std::endian::little);

template <typename Word>
std::uint64_t read_word(const std::byte* from) {
  Word word = 0;
  std::memcpy(&word, from, sizeof(Word));
  return word;
}

std::uint64_t round(std::uint64_t lane, std::uint64_t input) {
  return std::rotl(lane + input * kPrime2, 31) * kPrime1;
}

}  // namespace

Checksum::Checksum(std::uint64_t seed)
    : seed_(seed), lanes_{seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1} {}

void Checksum::mix(const std::byte* stripe) {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    lanes_[i] = round(lanes_[i], read_word<std::uint64_t>(stripe + 8 * i));
  }
}

void Checksum::add(std::span<const std::byte> bytes) {
  total_ += bytes.size();
  if (rest_size_ > 0) {
    const std::size_t taken = std::min(kStripe - rest_size_, bytes.size());
    std::copy_n(bytes.begin(), taken, rest_.begin() + static_cast<std::ptrdiff_t>(rest_size_));
    rest_size_ += taken;
    bytes = bytes.subspan(taken);
    if (rest_size_ < kStripe) {
      return;
    }
    mix(rest_.data());
    rest_size_ = 0;
  }
  for (; bytes.size() >= kStripe; bytes = bytes.subspan(kStripe)) {
    mix(bytes.data());
  }
  std::copy(bytes.begin(), bytes.end(), rest_.begin());
  rest_size_ = bytes.size();
}

std::uint64_t Checksum::value() const {
  std::uint64_t hash = seed_ + kPrime5;
  if (total_ >= kStripe) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) +
           std::rotl(lanes_[3], 18);
    for (const std::uint64_t lane : lanes_) {
      hash = (hash ^ round(0, lane)) * kPrime1 + kPrime4;
    }
  }
  hash += total_;
  const std::byte* at = rest_.data();
  const std::byte* end = at + rest_size_;
  for (; end - at >= 8; at += 8) {
    hash = std::rotl(hash ^ round(0, read_word<std::uint64_t>(at)), 27) * kPrime1 + kPrime4;
  }
  for (; end - at >= 4; at += 4) {
    hash = std::rotl(hash ^ (read_word<std::uint32_t>(at) * kPrime1), 23) * kPrime2 + kPrime3;
  }
  for (; at != end; ++at) {
    hash = std::rotl(hash ^ (std::to_integer<std::uint64_t>(*at) * kPrime5), 11) * kPrime1;
  }
  hash = (hash ^ (hash >> 33U)) * kPrime2;
  hash = (hash ^ (hash >> 29U)) * kPrime3;
  return hash ^ (hash >> 32U);
}

std::uint64_t checksum(std::span<const std::byte> bytes) {
  Checksum sum;
  sum.add(bytes);
  return sum.value();
}

}  // namespace saker
