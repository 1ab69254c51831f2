// SPDX-License-Identifier: Apache-2.0
#pragma once

// An owned buffer of bytes, aligned to a cache line; its content starts undefined. Large buffers
// use huge pages where the system has some ready: otherwise streaming through hundreds of megabytes
// spends its time in page walks.

#include <cstddef>

namespace saker::kernels {

class AlignedBytes {
 public:
  AlignedBytes() = default;
  // Throws kCapacity when out of memory.
  explicit AlignedBytes(std::size_t size);
  AlignedBytes(AlignedBytes&& other) noexcept;
  AlignedBytes& operator=(AlignedBytes&& other) noexcept;
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;
  ~AlignedBytes();

  std::byte* data() { return data_; }

  const std::byte* data() const { return data_; }

  std::size_t size() const { return size_; }

  // Grows to at least `size` bytes. The content is lost when it grows.
  void reserve(std::size_t size);

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace saker::kernels
