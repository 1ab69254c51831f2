// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/gpu/backend.h"

#include "saker/base/error.h"
#include "saker/kernels/cpu/dispatch/dispatch.h"

#include <exception>
#include <optional>
#include <utility>

namespace saker::kernels {
namespace {

constexpr int kMaxThreads = 1024;

thread_local const ComputeContext* bound_context = nullptr;
thread_local bool pretends_gpu = false;

mx::Device device_of(std::string_view name) {
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
  return device;
}

int thread_count(int asked) {
  require(
      asked >= 0 && asked <= kMaxThreads,
      ErrorCode::kInvalidArgument,
      "[threads] got {}, expected 0 to {}",
      asked,
      kMaxThreads
  );
  return asked > 0 ? asked : available_processors();
}

}  // namespace

ComputeContext::ComputeContext(const ComputeOptions& options)
    : device_(device_of(options.device)),
      on_cpu_(!pretends_gpu && device_ == mx::Device::cpu),
      pool_(thread_count(options.threads)) {}

ComputeBinding::ComputeBinding(ComputeContext& context)
    : outer_(std::exchange(bound_context, &context)), pool_(context.pool_) {}

ComputeBinding::~ComputeBinding() {
  bound_context = outer_;
  try {
    if (const std::optional<mx::Stream> stream = mx::peek_default_stream(mx::Device::cpu)) {
      mx::synchronize(*stream);
    }
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // Evaluating the operation that failed has already reported the error.
  }
}

mx::Device mlx_device() {
  return bound_context != nullptr ? bound_context->device() : mx::default_device();
}

bool on_cpu() {
  return bound_context != nullptr ? bound_context->on_cpu()
                                  : !pretends_gpu && mx::default_device() == mx::Device::cpu;
}

void pretend_gpu(bool pretend) {
  pretends_gpu = pretend;
}

void set_threads(int count) {
  thread_pool().resize(thread_count(count));
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
