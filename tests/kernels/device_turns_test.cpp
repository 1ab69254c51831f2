// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/gpu/device_turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>
#include <utility>
#include <vector>

namespace saker::kernels {
namespace {

constexpr mx::Device::DeviceType kCpu = mx::Device::cpu;
constexpr mx::Device::DeviceType kGpu = mx::Device::gpu;

// Turns that remember the device in use.
struct Machine {
  std::atomic<mx::Device::DeviceType> device{kCpu};
  DeviceTurns turns{[this](mx::Device chosen) { device = chosen.type; }};
};

TEST(DeviceTurns, ThreadsOfOneDeviceRunAtTheSameTime) {
  Machine machine;
  std::latch both(2);  // One turn after the other would never pass it.
  const auto run = [&] {
    const DeviceTurn turn(kGpu, machine.turns);
    both.arrive_and_wait();
    EXPECT_EQ(machine.device, kGpu);
  };
  std::thread other(run);
  run();
  other.join();
}

TEST(DeviceTurns, EveryTurnHasItsDevice) {
  Machine machine;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&machine, i] {
      for (int turn = 0; turn < 300; ++turn) {
        const auto device = (i + turn / 7) % 2 == 0 ? kCpu : kGpu;
        const DeviceTurn own(device, machine.turns);
        ASSERT_EQ(machine.device, device);
        std::this_thread::yield();
        ASSERT_EQ(machine.device, device);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

// A device whose threads follow each other without a gap does not keep the other one out.
TEST(DeviceTurns, NobodyStarves) {
  Machine machine;
  std::atomic<bool> over = false;
  std::vector<std::thread> busy;
  for (int i = 0; i < 2; ++i) {
    busy.emplace_back([&] {
      while (!over) {
        const DeviceTurn turn(kCpu, machine.turns);
        std::this_thread::yield();
      }
    });
  }
  for (int turn = 0; turn < 20; ++turn) {
    const DeviceTurn own(kGpu, machine.turns);
    EXPECT_EQ(machine.device, kGpu);
  }
  over = true;
  for (std::thread& thread : busy) {
    thread.join();
  }
}

TEST(DeviceTurns, AThreadThatWaitsForAnotherGivesItsTurn) {
  Machine machine;
  const DeviceTurn turn(kCpu, machine.turns);
  std::thread other([&] {
    const DeviceTurn own(kGpu, machine.turns);
    EXPECT_EQ(machine.device, kGpu);
  });
  {
    const DeviceTurn::Pause pause;
    other.join();
    const DeviceTurn::Pause nothing_left;
  }
  EXPECT_EQ(machine.device, kCpu);
}

}  // namespace
}  // namespace saker::kernels
