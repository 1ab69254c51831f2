// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/gpu/device_turns.h"

#include <utility>

namespace saker::kernels {
namespace {

thread_local DeviceTurn* own_turn = nullptr;

void select_default(mx::Device device) {
  if (mx::default_device() != device) {
    mx::set_default_device(device);
  }
}

}  // namespace

DeviceTurns::DeviceTurns(std::function<void(mx::Device)> select) : select_(std::move(select)) {}

void DeviceTurns::begin(mx::Device device) {
  std::unique_lock lock(mutex_);
  const std::uint64_t ticket = next_ticket_++;
  changed_.wait(lock, [&] {
    return ticket == served_ticket_ && (running_ == 0 || device_ == device);
  });
  ++served_ticket_;
  if (running_ == 0) {
    device_ = device;
    select_(device);
  }
  ++running_;
  changed_.notify_all();
}

void DeviceTurns::end() {
  const std::lock_guard lock(mutex_);
  if (--running_ == 0) {
    changed_.notify_all();
  }
}

DeviceTurns& device_turns() {
  static DeviceTurns& turns = *new DeviceTurns(select_default);  // Engines may outlive all else.
  return turns;
}

DeviceTurn::DeviceTurn(mx::Device device, DeviceTurns& turns) : device_(device), turns_(turns) {
  turns_.begin(device_);
  own_turn = this;
}

DeviceTurn::~DeviceTurn() {
  own_turn = nullptr;
  turns_.end();
}

DeviceTurn::Pause::Pause() : paused_(std::exchange(own_turn, nullptr)) {
  if (paused_ != nullptr) {
    paused_->turns_.end();
  }
}

DeviceTurn::Pause::~Pause() {
  if (paused_ != nullptr) {
    paused_->turns_.begin(paused_->device_);
    own_turn = paused_;
  }
}

}  // namespace saker::kernels
