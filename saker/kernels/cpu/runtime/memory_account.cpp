// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/cpu/runtime/memory_account.h"

#include <utility>

namespace saker::kernels {
namespace {

thread_local std::shared_ptr<MemoryAccount> bound_account;

}  // namespace

void MemoryAccount::add(std::size_t bytes) noexcept {
  const std::size_t now = bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::size_t peak = peak_.load(std::memory_order_relaxed);
  while (peak < now && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

void MemoryAccount::remove(std::size_t bytes) noexcept {
  bytes_.fetch_sub(bytes, std::memory_order_relaxed);
}

AccountBinding::AccountBinding(std::shared_ptr<MemoryAccount> account)
    : outer_(std::exchange(bound_account, std::move(account))) {}

AccountBinding::~AccountBinding() {
  bound_account = std::move(outer_);
}

HeldBytes::HeldBytes(std::size_t bytes) noexcept : account_(bound_account), bytes_(bytes) {
  if (account_) {
    account_->add(bytes_);
  }
}

HeldBytes::HeldBytes(const HeldBytes& other) noexcept
    : account_(other.account_), bytes_(other.bytes_) {
  if (account_) {
    account_->add(bytes_);
  }
}

HeldBytes::HeldBytes(HeldBytes&& other) noexcept
    : account_(std::move(other.account_)), bytes_(std::exchange(other.bytes_, 0)) {}

HeldBytes& HeldBytes::operator=(HeldBytes other) noexcept {
  std::swap(account_, other.account_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

HeldBytes::~HeldBytes() {
  if (account_) {
    account_->remove(bytes_);
  }
}

void HeldBytes::resize(std::size_t bytes) noexcept {
  if (account_ && bytes > bytes_) {
    account_->add(bytes - bytes_);
  } else if (account_) {
    account_->remove(bytes_ - bytes);
  }
  bytes_ = bytes;
}

}  // namespace saker::kernels
