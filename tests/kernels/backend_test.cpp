// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/gpu/backend.h"

#include "saker/base/error.h"
#include "saker/kernels/ops/cpu_operation.h"

#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/saved_machine.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

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

// Writes the threads that an operation has; with `late`, -1 after a while.
struct EvaluatingThreadsBody {
  int* threads;
  bool late = false;

  auto operator()(const std::vector<mx::array>&, std::vector<mx::array>&) const {
    return [*this] {
      if (late) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
      *threads = late ? -1 : kernels::threads();
    };
  }
};

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

TEST(Backend, OperationsOfABoundThreadHaveItsContext) {
  const int before = threads();
  ComputeContext context({.device = "cpu", .threads = before + 2});
  int evaluating = 0;
  {
    const ComputeBinding binding(context);
    EXPECT_EQ(threads(), before + 2);
    EXPECT_EQ(mlx_device(), mx::Device::cpu);
    EXPECT_TRUE(on_cpu());
    mx::eval(
        cpu_operation("EvaluatingThreads", mx::Shape{1}, {}, EvaluatingThreadsBody{&evaluating})
    );
    EXPECT_EQ(evaluating, before + 2);
    // An operation that nobody waits for still ends before the context.
    mx::async_eval(cpu_operation(
        "EvaluatingThreads", mx::Shape{1}, {}, EvaluatingThreadsBody{&evaluating, true}
    ));
  }
  EXPECT_EQ(evaluating, -1);
  EXPECT_EQ(threads(), before);
}

TEST(Backend, AContextPretendsIfItsMakerDid) {
  pretend_gpu(true);
  ComputeContext gpu({});
  pretend_gpu(false);
  ComputeContext cpu({});
  const ComputeBinding outer(cpu);
  EXPECT_TRUE(on_cpu());
  {
    const ComputeBinding inner(gpu);
    EXPECT_FALSE(on_cpu());
    EXPECT_EQ(mlx_device(), mx::Device::cpu);
  }
  EXPECT_TRUE(on_cpu());
}

TEST(Backend, RefusesContextsThatCannotBe) {
  const auto code = [](const ComputeOptions& options) {
    return code_of([&] { const ComputeContext context(options); });
  };
  EXPECT_EQ(code({.device = "tpu"}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({.device = "cpu", .threads = -1}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({.device = "cpu", .threads = 1 << 20}), ErrorCode::kInvalidArgument);
  if (!mx::is_available(mx::Device::gpu)) {
    EXPECT_EQ(code({.device = "gpu"}), ErrorCode::kUnsupported);
    EXPECT_TRUE(on_cpu());
  }
}

}  // namespace
}  // namespace saker::kernels
