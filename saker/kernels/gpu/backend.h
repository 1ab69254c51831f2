// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which device runs the operations of a thread, and on how many threads: CPU with our own bodies,
// or a GPU with MLX's. Each engine has a `ComputeContext`, to which it binds its thread. Other
// threads use MLX's default device and the shared thread pool.

#include "saker/kernels/cpu/runtime/thread_pool.h"
#include "saker/kernels/mx.h"

#include <string>
#include <string_view>

namespace saker::kernels {

struct ComputeOptions {
  std::string device = "cpu";  // Or "gpu".
  // Threads of CPU kernels; 0: one per processor that this process may use. Results do not depend
  // on it.
  int threads = 0;
};

// A device and a thread pool, usually of one engine. The pool's threads end with the context.
class ComputeContext {
 public:
  // Throws kInvalidArgument for unknown values, kUnsupported when this MLX lacks the device.
  explicit ComputeContext(const ComputeOptions& options);

  mx::Device device() const { return device_; }

  bool on_cpu() const { return on_cpu_; }

 private:
  friend class ComputeBinding;

  mx::Device device_;
  bool on_cpu_;
  ThreadPool pool_;
};

// Binds the calling thread to a context until the binding ends. Then it waits for operations of the
// thread that still run. REQUIRES: it ends on the same thread, before the context.
class ComputeBinding {
 public:
  explicit ComputeBinding(ComputeContext& context);
  ~ComputeBinding();
  ComputeBinding(const ComputeBinding&) = delete;
  ComputeBinding& operator=(const ComputeBinding&) = delete;

 private:
  const ComputeContext* outer_;
  PoolBinding pool_;
};

// The calling thread's device: its context's, else MLX's default.
mx::Device mlx_device();
// True when the calling thread's device is the CPU: operations then run our bodies.
bool on_cpu();
// For tests: after pretend_gpu(true), `on_cpu` returns false on the calling thread and in contexts
// that it makes. Operations are MLX's own, as on a GPU. Models and caches of the thread itself are
// valid only between the two calls that they were made between.
void pretend_gpu(bool pretend);

// Resizes the calling thread's pool; `count` as in ComputeOptions.
void set_threads(int count);
int threads();

// The instruction set of the CPU bodies: "amx", "avx512_bf16_zen4", "avx512_bf16", "avx512_vnni",
// "avx512" or "avx2"; "neon_bf16" or "neon"; or "portable". The environment variable SAKER_CPU
// selects one. If the machine lacks it, the first use throws kUnsupported.
std::string_view instruction_set();
// For tests: switches the instruction set between passes. Weights must be packed again.
void select_instruction_set(std::string_view name);

}  // namespace saker::kernels
