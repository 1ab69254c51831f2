// SPDX-License-Identifier: Apache-2.0
#pragma once

// An MLX primitive made of a plain function object, its body.
//
// MLX evaluates the operation by calling `Task operator()(const std::vector<mx::array>& inputs,
// std::vector<mx::array>& outputs)`. Outputs are allocated by then; inputs may not hold their
// values yet. The body returns the task that runs on the stream's thread, with the thread pool of
// the thread that evaluates. The task captures pointers and must not outlive the arrays (MLX keeps
// them until it ran).

#include "saker/kernels/cpu/runtime/thread_pool.h"
#include "saker/kernels/mx.h"

#include "mlx/backend/cpu/encoder.h"
#include "mlx/primitives.h"

#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

namespace saker::kernels {

template <typename Body>
class CpuOperation : public mx::Primitive {
 public:
  // `updates`: the first result may reuse the memory of the first input.
  CpuOperation(mx::Stream stream, const char* name, Body body, bool updates = false)
      : mx::Primitive(stream), name_(name), body_(std::move(body)), updates_(updates) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    std::size_t first = 0;
    if (updates_ && inputs[0].is_donatable() && inputs[0].flags().row_contiguous) {
      outputs[first++].copy_shared_buffer(inputs[0]);
    }
    for (; first < outputs.size(); ++first) {
      mx::array& output = outputs[first];
      output.set_data(mx::allocator::malloc(output.nbytes()));
    }
    mx::cpu::get_command_encoder(stream()).dispatch([pool = &thread_pool(),
                                                     task = body_(inputs, outputs)]() mutable {
      const PoolBinding binding(*pool);
      task();
    });
  }

  void eval_gpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    throw std::runtime_error("this operation runs on CPU only");
  }

  const char* name() const override { return name_; }

  bool is_equivalent(const mx::Primitive&) const override { return false; }

 private:
  const char* name_;
  Body body_;
  bool updates_;
};

// An operation with one float32 result.
template <typename Body>
mx::array cpu_operation(
    const char* name, mx::Shape shape, std::vector<mx::array> inputs, Body body
) {
  auto stream = mx::default_stream(mx::Device::cpu);
  auto primitive = std::make_shared<CpuOperation<Body>>(stream, name, std::move(body));
  return mx::array(std::move(shape), mx::float32, std::move(primitive), std::move(inputs));
}

// One float32 result of the first input's shape. It takes that input's memory when nobody else
// needs it; otherwise the task must copy the input.
template <typename Body>
mx::array cpu_update(const char* name, std::vector<mx::array> inputs, Body body) {
  auto stream = mx::default_stream(mx::Device::cpu);
  auto primitive = std::make_shared<CpuOperation<Body>>(stream, name, std::move(body), true);
  auto shape = inputs.front().shape();
  return mx::array(std::move(shape), mx::float32, std::move(primitive), std::move(inputs));
}

// An operation with several results.
template <typename Body>
std::vector<mx::array> cpu_operation(
    const char* name,
    const std::vector<mx::Shape>& shapes,
    const std::vector<mx::Dtype>& dtypes,
    const std::vector<mx::array>& inputs,
    Body body
) {
  auto stream = mx::default_stream(mx::Device::cpu);
  auto primitive = std::make_shared<CpuOperation<Body>>(stream, name, std::move(body));
  return mx::array::make_arrays(shapes, dtypes, std::move(primitive), inputs);
}

// An operation with several float32 results.
template <typename Body>
std::vector<mx::array> cpu_operation(
    const char* name,
    const std::vector<mx::Shape>& shapes,
    const std::vector<mx::array>& inputs,
    Body body
) {
  const std::vector<mx::Dtype> dtypes(shapes.size(), mx::float32);
  return cpu_operation(name, shapes, dtypes, inputs, std::move(body));
}

}  // namespace saker::kernels
