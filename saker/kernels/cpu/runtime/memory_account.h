// SPDX-License-Identifier: Apache-2.0
#pragma once

// Bytes that the caches of an owner hold, such as of an engine. Memory counts for the account that
// its thread was bound to when it was taken, until it is given back, on any thread. Shared memory
// counts once.

#include <atomic>
#include <cstddef>
#include <memory>

namespace saker::kernels {

class MemoryAccount {
 public:
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

  // The most bytes at any time.
  std::size_t peak() const { return peak_.load(std::memory_order_relaxed); }

  void add(std::size_t bytes) noexcept;
  void remove(std::size_t bytes) noexcept;

 private:
  std::atomic<std::size_t> bytes_{0};
  std::atomic<std::size_t> peak_{0};
};

// Makes `account` the calling thread's until the binding ends; null: memory is not counted.
// Bindings nest. REQUIRES: it ends on the same thread.
class AccountBinding {
 public:
  explicit AccountBinding(std::shared_ptr<MemoryAccount> account);
  ~AccountBinding();
  AccountBinding(const AccountBinding&) = delete;
  AccountBinding& operator=(const AccountBinding&) = delete;

 private:
  std::shared_ptr<MemoryAccount> outer_;
};

// Bytes on the account of the thread that made it. A copy counts again.
class HeldBytes {
 public:
  explicit HeldBytes(std::size_t bytes = 0) noexcept;
  HeldBytes(const HeldBytes& other) noexcept;
  HeldBytes(HeldBytes&& other) noexcept;
  HeldBytes& operator=(HeldBytes other) noexcept;
  ~HeldBytes();

  std::size_t bytes() const { return bytes_; }

  void resize(std::size_t bytes) noexcept;

 private:
  std::shared_ptr<MemoryAccount> account_;
  std::size_t bytes_;
};

}  // namespace saker::kernels
