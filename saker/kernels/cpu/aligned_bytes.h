// SPDX-License-Identifier: Apache-2.0
#pragma once

// A buffer of bytes aligned to a cache line, owned; its content starts undefined. Large ones ask
// for huge pages where the system has them at hand, since streaming through hundreds of megabytes
// otherwise spends its time in page walks.

#include <cstddef>

namespace saker::kernels {

class AlignedBytes {
 public:
  AlignedBytes() = default;
  // Throws kCapacity without memory.
  explicit AlignedBytes(std::size_t size);
  AlignedBytes(AlignedBytes&& other) noexcept;
  AlignedBytes& operator=(AlignedBytes&& other) noexcept;
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;
  ~AlignedBytes();

  std::byte* data() { return data_; }

  const std::byte* data() const { return data_; }

  std::size_t size() const { return size_; }

  // Makes room for `size` bytes; the content is lost when it grows.
  void reserve(std::size_t size);

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace saker::kernels
