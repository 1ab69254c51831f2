// SPDX-License-Identifier: Apache-2.0
#pragma once

// Plans a model's conversion: a step for each tensor, and the new configuration. Decided from
// names, shapes and dtypes; no tensor is read. Threading: none.

#include "saker/base/json/json.h"
#include "saker/base/tensor.h"
#include "saker/load/convert/convert_model.h"
#include "saker/load/convert/mlx_weights.h"
#include "saker/load/convert/quantization_plan.h"
#include "saker/load/convert/tensor_steps.h"
#include "saker/models/tensor_roster.h"
#include "saker/nn/weights/weights.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load {

class Conversion {
 public:
  // `roster` is empty for drafts of other designs, whose tensors all stay. `is_made` marks another
  // program's model: its codes may be quantized anew, and weights that were quantized may be floats
  // already.
  struct Input {
    Json config;
    std::vector<ModelTensor> tensors;
    std::optional<models::TensorRoster> roster;
    bool is_made = false;
  };

  // Throws kInvalidArgument for options that do not suit this model. REQUIRES: `options` outlives
  // it.
  Conversion(Input input, const ConvertOptions& options);

  // Throws kCorruptData for invalid codes and for importance that does not fit, kUnsupported for
  // float64.
  std::vector<TensorStep> steps();

  // The configuration to write, sorted as mlx-lm sorts it.
  Json config() const;

  // The report of the steps.
  const ConvertReport& report() const { return report_; }

 private:
  using ByName = std::map<std::string, const ModelTensor*, std::less<>>;

  void leave_out_unread();
  void check_request() const;
  std::vector<WeightShape> matrices() const;
  const ModelTensor* sibling(std::string_view path, std::string_view leaf) const;
  bool is_part_of_codes(std::string_view name) const;
  bool has_codes(const ModelTensor& tensor) const;
  void check_columns(std::string_view path, int columns) const;
  kernels::WeightFormat codes_of(const ModelTensor& weight) const;
  std::optional<TensorStep> step_for(const ModelTensor& tensor) const;
  TensorStep decode_step(const ModelTensor& tensor) const;
  std::optional<kernels::WeightFormat> planned(const ModelTensor& tensor) const;
  void add_importance(TensorStep& step) const;
  void check_importance_used(const std::vector<TensorStep>& steps) const;
  void count(const TensorStep& step);
  // True for tensors of modules that contain modules, which mlx-lm does not count as parameters.
  bool is_of_a_whole(std::string_view name) const;
  std::int64_t parameters_of(const TensorStep& step) const;

  Input input_;
  const ConvertOptions& options_;
  ByName by_name_;
  nn::QuantizationConfig quantization_;
  bool has_codes_ = false;
  std::optional<DType> dtype_;
  QuantizationPlan plan_;
  ConvertReport report_;
};

}  // namespace saker::load
