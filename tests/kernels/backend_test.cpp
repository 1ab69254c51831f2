// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/gpu/backend.h"

#include "saker/base/error.h"

#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/saved_machine.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace saker::kernels {
namespace {

ErrorCode code_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kInternal;
}

TEST(Backend, SetsThreads) {
  const int before = threads();
  set_threads(3);
  EXPECT_EQ(threads(), 3);
  set_threads(1);
  EXPECT_EQ(threads(), 1);
  EXPECT_EQ(code_of([] { set_threads(-1); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([] { set_threads(1 << 20); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(threads(), 1);
  set_threads(0);
  EXPECT_GE(threads(), 1);
  set_threads(before);
}

TEST(Backend, SelectsInstructionSets) {
  const SavedMachine saved;
  const auto names = instruction_sets();
  ASSERT_NE(std::find(names.begin(), names.end(), "portable"), names.end());
  for (const std::string& name : names) {
    select_instruction_set(name);
    EXPECT_EQ(instruction_set(), name);
  }
  EXPECT_EQ(code_of([] { select_instruction_set("sse5"); }), ErrorCode::kUnsupported);
  EXPECT_EQ(instruction_set(), names.back());
}

TEST(Backend, PretendsToBeAGpuUntilItIsTakenBack) {
  const bool before = on_cpu();
  pretend_gpu(true);
  EXPECT_FALSE(on_cpu());
  pretend_gpu(false);
  EXPECT_EQ(on_cpu(), before);
}

TEST(Backend, RefusesDevicesThatAreAbsent) {
  EXPECT_EQ(code_of([] { select_device("tpu"); }), ErrorCode::kInvalidArgument);
  if (!mx::is_available(mx::Device::gpu)) {
    EXPECT_EQ(code_of([] { select_device("gpu"); }), ErrorCode::kUnsupported);
    EXPECT_TRUE(on_cpu());
  }
}

}  // namespace
}  // namespace saker::kernels
