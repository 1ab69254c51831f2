// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/cpu/runtime/aligned_bytes.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "saker/base/error.h"

namespace saker::kernels {
namespace {

constexpr std::size_t kLine = 64;

std::size_t round_up(std::size_t size, std::size_t unit) {
  return (size + unit - 1) / unit * unit;
}

#if defined(__linux__)
constexpr std::size_t kHugePage = std::size_t{2} << 20;

// Large buffers are direct mappings, so that they return to the system when freed, whatever the C
// library keeps.
bool is_mapped(std::size_t size) {
  return size >= 4 * kHugePage;
}

// Processor time of this thread.
std::chrono::nanoseconds processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// Requests huge pages, until some took far longer than clearing them would. A virtual machine that
// returned free memory to its host must get each huge page anew, but has small ones ready.
//
// The time is the thread's own, so that a page is not slow because other programs had its
// processor. The next ones are tested too. After a fast one only a few later ones are touched, since
// not all of a buffer may be used.
void ask_for_huge_pages(std::byte* memory, std::size_t size) {
  constexpr std::chrono::milliseconds kLong(1);
  constexpr int kSlowPages = 3;
  constexpr std::size_t kNextLook = 16 * kHugePage;
  static std::atomic<int> slow_pages = 0;
  if (slow_pages >= kSlowPages) {
    return;
  }
  madvise(memory, size, MADV_HUGEPAGE);
  for (std::size_t at = 0; at < size;) {
    const auto start = processor_time();
    *static_cast<volatile std::byte*>(memory + at) = std::byte{0};
    const bool slow = processor_time() - start > kLong;
    if (slow && ++slow_pages >= kSlowPages) {
      madvise(memory, size, MADV_NOHUGEPAGE);
      return;
    }
    at += slow ? kHugePage : kNextLook;
  }
}

// `size` bytes, whole huge pages, aligned to a huge page; null when out of memory.
std::byte* map_huge_pages(std::size_t size) {
  const std::size_t reserved = size + kHugePage;
  void* mapped =
      mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    return nullptr;
  }
  auto* const first = static_cast<std::byte*>(mapped);
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(first) % kHugePage;
  if (before > 0) {
    munmap(first, before);
  }
  munmap(first + before + size, kHugePage - before);
  ask_for_huge_pages(first + before, size);
  return first + before;
}
#endif

std::byte* allocate(std::size_t size) {
#if defined(__linux__)
  if (is_mapped(size)) {
    return map_huge_pages(round_up(size, kHugePage));
  }
#endif
  return static_cast<std::byte*>(std::aligned_alloc(kLine, round_up(size, kLine)));
}

void release(std::byte* data, [[maybe_unused]] std::size_t size) {
#if defined(__linux__)
  if (is_mapped(size)) {
    munmap(data, round_up(size, kHugePage));
    return;
  }
#endif
  std::free(data);
}

}  // namespace

AlignedBytes::AlignedBytes(std::size_t size) {
  if (size == 0) {
    return;
  }
  // Rounded sizes must not wrap around.
  data_ = size <= SIZE_MAX / 2 ? allocate(size) : nullptr;
  require(
      data_ != nullptr,
      ErrorCode::kCapacity,
      "[memory] no {} bytes left for a kernel's buffer",
      size
  );
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
  release(data_, size_);
}

void AlignedBytes::reserve(std::size_t size) {
  if (size > size_) {
    *this = AlignedBytes();
    *this = AlignedBytes(size);
  }
}

}  // namespace saker::kernels
