// SPDX-License-Identifier: Apache-2.0
#pragma once

// Memory of one page of rows, shared by any number of tables; the last one frees it. Unlike
// std::shared_ptr's use count, `is_private` synchronises: a caller that sees true also sees all
// that other holders wrote. Handles may be copied and destroyed on any thread.

#include "saker/kernels/cpu/runtime/memory_account.h"
#include "saker/kernels/cpu/runtime/page_memory.h"

#include <atomic>
#include <cstddef>
#include <new>
#include <utility>

namespace saker::kernels {

class SharedPage {
 public:
  // Not filled, 64-byte aligned. Throws as take_page does.
  explicit SharedPage(std::size_t bytes)
      : head_(new(take_page(sizeof(Head) + bytes)) Head(sizeof(Head) + bytes)) {}

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
      const std::size_t bytes = head_->held.bytes();
      head_->~Head();
      give_page_back(reinterpret_cast<std::byte*>(head_), bytes);
    }
  }

  std::byte* get() const { return reinterpret_cast<std::byte*>(head_ + 1); }

  bool is_private() const { return head_->holders.load(std::memory_order_acquire) == 1; }

  // Bytes that a page of `bytes` takes.
  static constexpr std::size_t memory(std::size_t bytes) { return sizeof(Head) + bytes; }

  // True if both are the same memory.
  bool operator==(const SharedPage&) const = default;

 private:
  // The rows follow the head in memory.
  struct alignas(64) Head {
    explicit Head(std::size_t taken) : held(taken) {}

    std::atomic<int> holders{1};
    HeldBytes held;  // Bytes taken, including this head.
  };

  Head* head_ = nullptr;
};

}  // namespace saker::kernels
