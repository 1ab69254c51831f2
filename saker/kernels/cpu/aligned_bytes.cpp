// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/cpu/aligned_bytes.h"

#include <atomic>
#include <chrono>
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

#if defined(__linux__)
// Asks for huge pages, until one takes far longer than to clear it: a virtual machine that gave its
// free memory back has to be lent each of them anew, while it has small ones at hand.
void ask_for_huge_pages(std::byte* memory, std::size_t size) {
  constexpr std::chrono::milliseconds kLong(1);
  static std::atomic<bool> at_hand = true;
  if (!at_hand) {
    return;
  }
  madvise(memory, size, MADV_HUGEPAGE);
  const auto start = std::chrono::steady_clock::now();
  *static_cast<volatile std::byte*>(memory) = std::byte{0};
  if (std::chrono::steady_clock::now() - start > kLong) {
    at_hand = false;
    madvise(memory, size, MADV_NOHUGEPAGE);
  }
}
#endif

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
  data_ = static_cast<std::byte*>(memory);
  size_ = size;
#if defined(__linux__)
  if (huge) {
    ask_for_huge_pages(data_, rounded);
  }
#endif
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
