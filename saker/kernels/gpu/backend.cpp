// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/gpu/backend.h"

#include "saker/base/error.h"
#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/cpu/runtime/thread_pool.h"

#include <atomic>

namespace saker::kernels {
namespace {

constexpr int kMaxThreads = 1024;

std::atomic<bool> pretends_gpu = false;

}  // namespace

bool on_cpu() {
  return !pretends_gpu && mx::default_device() == mx::Device::cpu;
}

void pretend_gpu(bool pretend) {
  pretends_gpu = pretend;
}

void select_device(std::string_view name) {
  require(
      name == "cpu" || name == "gpu",
      ErrorCode::kInvalidArgument,
      "[device] got '{}', expected cpu or gpu",
      name
  );
  const mx::Device device = name == "gpu" ? mx::Device::gpu : mx::Device::cpu;
  require(
      mx::is_available(device),
      ErrorCode::kUnsupported,
      "[device] got '{}', this build of MLX has none",
      name
  );
  mx::set_default_device(device);
}

void set_threads(int count) {
  require(
      count >= 0 && count <= kMaxThreads,
      ErrorCode::kInvalidArgument,
      "[threads] got {}, expected 0 to {}",
      count,
      kMaxThreads
  );
  thread_pool().resize(count > 0 ? count : available_processors());
}

int threads() {
  return thread_pool().size();
}

std::string_view instruction_set() {
  return kernel_table_name();
}

void select_instruction_set(std::string_view name) {
  select_kernel_table(name);
}

}  // namespace saker::kernels
