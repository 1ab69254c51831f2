// SPDX-License-Identifier: Apache-2.0
#pragma once

// An MLX primitive from a plain function.
//
// A body `Task operator()(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs)`
// is called when MLX evaluates the operation: outputs are allocated, inputs may not hold their
// values yet. It returns the task that runs on the stream's thread, which captures pointers and
// must not outlive the arrays (MLX keeps them until the task ran).
//
// A body whose result feeds a product (`kFusableIntoGemm`) may leave rows to that product:
// `makes_rows(rows)` says whether, and `start_producing(inputs, rows, make)` then returns the task and
// sets what makes rows once it has run.

#include "saker/kernels/cpu/multiply.h"
#include "saker/kernels/mx.h"

#include "mlx/backend/cpu/encoder.h"
#include "mlx/primitives.h"

#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

namespace saker::kernels {

// The rows of x that a part gives to a product.
struct PartRows {
  mx::array array;  // Without memory until the part starts.
  // Where it is not empty, the array stays without memory, and this makes the rows once the part's
  // task has run.
  RowProducer make = nullptr;
};

// An operation that another one may run as a part of its own.
class CpuPart {
 public:
  virtual ~CpuPart() = default;

  // The task that leaves the one result in `rows`.
  virtual std::function<void()> start(const std::vector<mx::array>& inputs, PartRows& rows)
      const = 0;

  // Whether nobody but the product that comes next reads the result.
  virtual bool feeds_product() const = 0;

 protected:
  CpuPart() = default;
  CpuPart(const CpuPart&) = default;
  CpuPart& operator=(const CpuPart&) = default;
};

template <typename Body>
class CpuOperation : public mx::Primitive, public CpuPart {
 public:
  // `updates`: the first result may take the memory of the first input.
  CpuOperation(mx::Stream stream, const char* name, Body body, bool updates = false)
      : mx::Primitive(stream), name_(name), body_(std::move(body)), updates_(updates) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    std::size_t first = 0;
    if (updates_ && inputs[0].is_donatable() && inputs[0].flags().row_contiguous) {
      outputs[first++].copy_shared_buffer(inputs[0]);
    }
    for (; first < outputs.size(); ++first) {
      give_memory(outputs[first]);
    }
    mx::cpu::get_command_encoder(stream()).dispatch(body_(inputs, outputs));
  }

  std::function<void()> start(const std::vector<mx::array>& inputs, PartRows& rows) const override {
    if constexpr (requires { body_.makes_rows(rows.array); }) {
      if (body_.makes_rows(rows.array)) {
        return body_.start_producing(inputs, rows.array, rows.make);
      }
    }
    give_memory(rows.array);
    std::vector<mx::array> outputs = {rows.array};
    return body_(inputs, outputs);
  }

  bool feeds_product() const override {
    return requires { Body::kFusableIntoGemm; };
  }

  void eval_gpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    throw std::runtime_error("this operation runs on CPU only");
  }

  const char* name() const override { return name_; }

  const Body& body() const { return body_; }

  bool is_equivalent(const mx::Primitive&) const override { return false; }

 private:
  const char* name_;
  Body body_;
  bool updates_;
};

// One float32 result.
template <typename Body>
mx::array cpu_operation(
    const char* name, mx::Shape shape, std::vector<mx::array> inputs, Body body
) {
  auto stream = mx::default_stream(mx::Device::cpu);
  auto primitive = std::make_shared<CpuOperation<Body>>(stream, name, std::move(body));
  return mx::array(std::move(shape), mx::float32, std::move(primitive), std::move(inputs));
}

// One float32 result of the first input's shape, in that input's memory when nobody else needs it:
// the task copies the input when the two differ.
template <typename Body>
mx::array cpu_update(const char* name, std::vector<mx::array> inputs, Body body) {
  auto stream = mx::default_stream(mx::Device::cpu);
  auto primitive = std::make_shared<CpuOperation<Body>>(stream, name, std::move(body), true);
  auto shape = inputs.front().shape();
  return mx::array(std::move(shape), mx::float32, std::move(primitive), std::move(inputs));
}

// Several results.
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

// Several float32 results.
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
