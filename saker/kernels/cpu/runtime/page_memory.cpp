// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/cpu/runtime/page_memory.h"

#include "saker/base/error.h"
#include "saker/kernels/cpu/runtime/aligned_bytes.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace saker::kernels {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kBufferBytes = std::size_t{8} << 20;
// Larger pages would waste too much of a buffer.
constexpr std::size_t kMaxBytes = kBufferBytes / 4;
// Buffers start beyond this, so that their unused rests and the rounding to huge pages stay small
// beside the memory in use.
constexpr std::size_t kSingleBytes = kBufferBytes;

std::size_t whole_lines(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

struct PageBuffer {
  explicit PageBuffer(std::size_t page_bytes)
      : memory(kBufferBytes), page_count(kBufferBytes / page_bytes) {
    free.reserve(page_count);  // So that give_back cannot fail.
    for (std::size_t i = page_count; i > 0; --i) {
      free.push_back(memory.data() + (i - 1) * page_bytes);
    }
  }

  bool is_unused() const { return free.size() == page_count; }

  AlignedBytes memory;
  std::size_t page_count;
  std::vector<std::byte*> free;  // The next one last, at first in order of address.
};

using Buffers = std::map<const std::byte*, PageBuffer>;  // By start address.

std::byte* take_single(std::size_t bytes) {
  void* const memory = std::aligned_alloc(kAlignment, bytes);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return static_cast<std::byte*>(memory);
}

Buffers::iterator add_buffer(Buffers& buffers, std::size_t page_bytes) {
  try {
    PageBuffer fresh(page_bytes);
    const std::byte* const begin = fresh.memory.data();
    return buffers.emplace(begin, std::move(fresh)).first;
  } catch (const Error&) {
    throw std::bad_alloc();  // Caches report what the memory was for.
  }
}

std::byte* take_from(Buffers& buffers, std::size_t bytes) {
  auto found = std::ranges::find_if(buffers, [](const auto& b) { return !b.second.free.empty(); });
  if (found == buffers.end()) {
    found = add_buffer(buffers, bytes);
  }
  std::byte* const page = found->second.free.back();
  found->second.free.pop_back();
  return page;
}

class PageMemory {
 public:
  std::byte* take(std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    if (bytes <= kMaxBytes && single_bytes_ >= kSingleBytes) {
      return take_from(buffers_[bytes], bytes);
    }
    std::byte* const page = take_single(bytes);
    single_bytes_ += bytes;
    return page;
  }

  void give_back(std::byte* page, std::size_t bytes) noexcept {
    const std::scoped_lock lock(mutex_);
    const auto of_size = buffers_.find(bytes);
    if (of_size != buffers_.end() && give_back_to(of_size->second, page)) {
      return;
    }
    std::free(page);
    single_bytes_ -= bytes;
  }

 private:
  // Returns the page to its buffer; false if no buffer owns it.
  static bool give_back_to(Buffers& buffers, std::byte* page) {
    const auto after = buffers.upper_bound(page);
    if (after == buffers.begin()) {
      return false;
    }
    const auto owner = std::prev(after);
    if (page >= owner->first + kBufferBytes) {
      return false;
    }
    owner->second.free.push_back(page);
    const auto is_unused = [](const auto& b) { return b.second.is_unused(); };
    // Keep one, for caches that grow and shrink by a page.
    if (owner->second.is_unused() && std::ranges::count_if(buffers, is_unused) > 1) {
      buffers.erase(owner);
    }
    return true;
  }

  std::mutex mutex_;
  std::size_t single_bytes_ = 0;
  std::map<std::size_t, Buffers> buffers_;  // By the size of their pages.
};

// Never destroyed: pages may outlive static objects at the program's end.
PageMemory& page_memory() {
  static auto& memory = *new PageMemory();
  return memory;
}

}  // namespace

std::byte* take_page(std::size_t bytes) {
  return page_memory().take(whole_lines(bytes));
}

void give_page_back(std::byte* page, std::size_t bytes) noexcept {
  page_memory().give_back(page, whole_lines(bytes));
}

}  // namespace saker::kernels
