// SPDX-License-Identifier: Apache-2.0
#pragma once

// Memory of one page of rows, held by any number of tables and freed by the last. Unlike the count
// of std::shared_ptr, `is_private` orders threads: who is told that nobody else holds the page also
// sees it as the others left it. Handles may be copied and end on any thread.

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

namespace saker::kernels {

class SharedPage {
 public:
  // Not filled, 64-byte aligned. Throws std::bad_alloc.
  explicit SharedPage(std::size_t bytes) {
    const std::size_t whole = (bytes + sizeof(Head) - 1) / sizeof(Head) * sizeof(Head);
    void* memory = std::aligned_alloc(alignof(Head), sizeof(Head) + whole);
    if (memory == nullptr) {
      throw std::bad_alloc();
    }
    head_ = new (memory) Head();
  }

  SharedPage(const SharedPage& other) noexcept : head_(other.head_) {
    if (head_ != nullptr) {
      head_->holders.fetch_add(1, std::memory_order_relaxed);
    }
  }

  SharedPage(SharedPage&& other) noexcept : head_(std::exchange(other.head_, nullptr)) {}

  SharedPage& operator=(SharedPage other) noexcept {
    std::swap(head_, other.head_);
    return *this;
  }

  ~SharedPage() {
    if (head_ != nullptr && head_->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      head_->~Head();
      std::free(head_);
    }
  }

  std::byte* get() const { return reinterpret_cast<std::byte*>(head_ + 1); }

  bool is_private() const { return head_->holders.load(std::memory_order_acquire) == 1; }

  // Whether they are the same memory.
  bool operator==(const SharedPage&) const = default;

 private:
  // The rows follow it.
  struct alignas(64) Head {
    std::atomic<int> holders{1};
  };

  Head* head_ = nullptr;
};

}  // namespace saker::kernels
