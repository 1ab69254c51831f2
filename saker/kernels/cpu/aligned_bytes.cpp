// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/cpu/aligned_bytes.h"

#include <cstdint>
#include <cstdlib>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "saker/base/error.h"

namespace saker::kernels {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

}  // namespace

AlignedBytes::AlignedBytes(std::size_t size) {
  if (size == 0) {
    return;
  }
  const bool huge = size >= 4 * kHugePage;
  const std::size_t alignment = huge ? kHugePage : kLine;
  require(size <= SIZE_MAX - alignment, ErrorCode::kCapacity, "[memory] got {} bytes", size);
  const std::size_t rounded = (size + kLine - 1) / kLine * kLine;
  void* memory = nullptr;
  const bool failed = posix_memalign(&memory, alignment, rounded) != 0;
  require(!failed, ErrorCode::kCapacity, "[memory] no {} bytes left for a kernel's buffer", size);
#if defined(__linux__)
  if (huge) {
    madvise(memory, rounded, MADV_HUGEPAGE);
  }
#endif
  data_ = static_cast<std::byte*>(memory);
  size_ = size;
}

AlignedBytes::AlignedBytes(AlignedBytes&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

AlignedBytes& AlignedBytes::operator=(AlignedBytes&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

AlignedBytes::~AlignedBytes() {
  std::free(data_);
}

void AlignedBytes::reserve(std::size_t size) {
  if (size > size_) {
    *this = AlignedBytes();
    *this = AlignedBytes(size);
  }
}

}  // namespace saker::kernels
