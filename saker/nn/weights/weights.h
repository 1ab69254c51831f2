// SPDX-License-Identifier: Apache-2.0
#pragma once

// Named tensors of a checkpoint, by scope: `weights / "self_attn" / "q_proj"`. Copies are cheap and
// share the map. Layers take their tensors when they are built; the map remembers that, so a loader
// can report tensors that nobody took. Looking at a tensor changes nothing.

#include "saker/base/tensor.h"
#include "saker/kernels/mx.h"
#include "saker/kernels/storage/packed_weight.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::nn {

// `config["quantization"]`: one format for all modules, and exceptions by module path (no format:
// not quantized).
struct QuantizationConfig {
  std::optional<kernels::WeightFormat> format;
  std::map<std::string, std::optional<kernels::WeightFormat>, std::less<>> overrides;
};

// The factors of a norm, [inputs] float32: the checkpoint's numbers plus `offset`.
struct NormWeight {
  mx::array factors;
  float offset = 0.0F;
};

// A projection of all experts of a mixture.
struct ExpertStack {
  std::string scope;  // Single experts' modules are SCOPE.7.NAME.
  std::string name;
  std::vector<kernels::WeightFormat> formats;  // By expert.
};

// A built module that adapters can change: a linear layer, an embedding, a norm or experts.
struct Module {
  std::string path;  // Its name in the checkpoint: "model.layers.0.self_attn.q_proj".
  bool embedding = false;
  int inputs = 0;  // K of [N, K]; for a norm, the size of its input.
  int outputs = 0;
  // Weight whose rows [first_row, first_row + outputs) are this module's; none for a norm.
  std::optional<kernels::PackedWeight> weight;
  int first_row = 0;
  std::optional<mx::array> bias;  // [outputs] float32
  std::optional<NormWeight> norm;
  // `inputs` and `outputs` are those of each expert; there is no `weight`.
  std::optional<ExpertStack> experts = std::nullopt;
};

// Makes the tensor of this name.
using MakeTensor = std::function<Tensor(const std::string& name)>;

class Weights {
 public:
  // Tensors without bytes are lazy: `make` makes one when a layer takes it, one at a time. It makes
  // it again if it is taken after its `release`.
  Weights(
      std::map<std::string, Tensor, std::less<>> tensors,
      QuantizationConfig quantization,
      MakeTensor make = {}
  );

  // The scope below this one.
  Weights operator/(std::string_view name) const;
  // Full name of `name` in this scope, as in files and messages.
  std::string path(std::string_view name) const;

  // These look.
  bool has(std::string_view name) const;
  // Dtype and shape, without bytes.
  std::optional<Tensor> find(std::string_view name) const;
  // The format of this scope's linear layer of `columns` inputs. It is quantized exactly if `scales`
  // exists; shapes and dtypes complete the configuration.
  kernels::WeightFormat linear_format(int columns) const;
  // The format of a tensor of floats. Throws kCorruptData if it is missing, kUnsupported for others.
  kernels::WeightFormat float_format(std::string_view name) const;

  // These take.
  // Throws kCorruptData naming the missing tensor.
  Tensor take(std::string_view name) const;
  // A one-dimensional float tensor (norm weight, bias) of `size` elements as float32. Throws
  // kCorruptData for another shape.
  mx::array vector(std::string_view name, int size) const;
  // A float tensor of this shape as float32. Throws kCorruptData for another shape.
  mx::array array(std::string_view name, const std::vector<int>& shape) const;
  // The `count` parts of a tensor [count, ...]. Throws kCorruptData for another shape.
  std::vector<Tensor> stack(std::string_view name, int count) const;
  // The tensors of this scope's linear layer.
  kernels::WeightTensors linear_tensors() const;
  // A stack of `count` layers (weight [count, N, K], scales and biases alike): the tensors of each.
  // Throws kCorruptData for other shapes.
  std::vector<kernels::WeightTensors> stacked_tensors(int count) const;

  // Layers register here what they built.
  void add_module(Module module) const;
  std::vector<Module> modules() const;

  // Tensors that nobody took.
  std::vector<std::string> unused() const;

 private:
  struct Map;

  std::shared_ptr<Map> map_;
  std::string scope_;
};

}  // namespace saker::nn
