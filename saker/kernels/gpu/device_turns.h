// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns of threads whose operations run on different devices. MLX has one default device for all
// threads, and an operation takes it when it is made. So threads of one device run at the same
// time, and those of another device wait. All members may be called from any thread.

#include "saker/kernels/mx.h"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

namespace saker::kernels {

class DeviceTurns {
 public:
  // `select` makes a device the default; nobody has a turn while it runs.
  explicit DeviceTurns(std::function<void(mx::Device)> select);

  // Waits until no turn of another device is left. First come, first served.
  void begin(mx::Device device);
  void end();

 private:
  std::function<void(mx::Device)> select_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_ticket_ = 0;
  std::uint64_t served_ticket_ = 0;
  int running_ = 0;  // Turns, all of device_.
  mx::Device device_ = mx::Device::cpu;
};

// The turns for MLX's default device.
DeviceTurns& device_turns();

// The calling thread's turn while it lives. A thread has one at most.
class DeviceTurn {
 public:
  explicit DeviceTurn(mx::Device device, DeviceTurns& turns = device_turns());
  ~DeviceTurn();
  DeviceTurn(const DeviceTurn&) = delete;
  DeviceTurn& operator=(const DeviceTurn&) = delete;

  // Gives the calling thread's turn, if it has one, to others while it waits for them.
  class Pause {
   public:
    Pause();
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    DeviceTurn* paused_;
  };

 private:
  mx::Device device_;
  DeviceTurns& turns_;
};

}  // namespace saker::kernels
