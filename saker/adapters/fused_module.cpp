// SPDX-License-Identifier: Apache-2.0
#include "saker/adapters/fused_module.h"

#include "saker/adapters/source_parts.h"
#include "saker/adapters/weight_norms.h"
#include "saker/adapters/weight_rows.h"
#include "saker/base/error.h"
#include "saker/kernels/cpu/runtime/thread_pool.h"
#include "saker/kernels/mx.h"
#include "saker/kernels/storage/packed_storage.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace saker::adapters {
namespace {

mx::Dtype mx_dtype(DType dtype) {
  return dtype == DType::kFloat32   ? mx::float32
         : dtype == DType::kFloat16 ? mx::float16
                                    : mx::bfloat16;
}

// Exactly `adapted` at strength 1.
float blend(float base, float adapted, float strength) {
  return strength == 1.0F ? adapted : base + strength * (adapted - base);
}

void require_finite(const mx::array& values, const FusedModule& module) {
  require(
      mx::all(mx::isfinite(values)).item<bool>(),
      ErrorCode::kInvalidArgument,
      "{}: with strength {} the adapter leaves numbers that the model's dtype can't hold",
      module.change.name,
      module.strength
  );
}

// A tensor that is filled piece by piece.
class Pieces {
 public:
  // Has the form of `like`, with this many rows.
  Pieces(const Tensor& like, std::int64_t rows)
      : tensor_(like), memory_(std::make_shared<std::vector<std::byte>>()) {
    tensor_.shape.front() = rows;
    memory_->reserve(tensor_.nbytes());
  }

  void add(const mx::array& piece) {
    const auto whole = mx::contiguous(piece);
    mx::eval(whole);
    const auto* bytes = whole.data<std::byte>();
    memory_->insert(memory_->end(), bytes, bytes + whole.nbytes());
  }

  Tensor finish() {
    tensor_.data = std::shared_ptr<const std::byte>(memory_, memory_->data());
    tensor_.release = nullptr;
    return std::move(tensor_);
  }

 private:
  Tensor tensor_;
  std::shared_ptr<std::vector<std::byte>> memory_;
};

// Computes rows of the weight in float32.
class FusedRows {
 public:
  explicit FusedRows(const FusedModule& module) : module_(module) {
    const ModuleSource& change = module.change;
    if (change.low_rank) {
      low_rank_.emplace(*change.low_rank);
    }
    if (change.low_rank && change.low_rank->magnitude) {
      ratios_ = magnitude_ratios(module.base, *change.low_rank, change.name);
      by_column_ = change.low_rank->embedding && !change.low_rank->by_token;
    }
  }

  // [count, inputs]
  mx::array rows(int first, int count) const {
    const nn::Module& base = module_.base;
    const auto columns = static_cast<std::size_t>(base.inputs);
    auto values = module_.resized_rows > 0
                      ? std::vector<float>(static_cast<std::size_t>(count) * columns)
                      : base_rows(base, first, count);
    const auto& weight = module_.change.weight;
    const auto adapted = weight ? to_floats(rows_of(*weight, first, count)) : values;
    kernels::thread_pool().run(count, [&](int i) {
      const auto at = static_cast<std::size_t>(i) * columns;
      const auto own = adapted.begin() + static_cast<std::ptrdiff_t>(at);
      fuse(
          first + i,
          std::vector<float>(own, own + static_cast<std::ptrdiff_t>(columns)),
          std::span(values).subspan(at, columns)
      );
    });
    return mx::array(values.begin(), {count, base.inputs}, mx::float32);
  }

 private:
  // `adapted` is the row before low-rank changes.
  void fuse(int row, std::vector<float> adapted, std::span<float> values) const {
    const auto index = static_cast<std::size_t>(row);
    if (low_rank_) {
      low_rank_->add(row, module_.change.low_rank->scale, adapted);
    }
    if (!ratios_.empty()) {
      for (std::size_t k = 0; k < adapted.size(); ++k) {
        adapted[k] *= ratios_[by_column_ ? k : index];
      }
    }
    for (std::size_t k = 0; k < values.size(); ++k) {
      values[k] = blend(values[k], adapted[k], module_.strength);
    }
  }

  const FusedModule& module_;
  std::optional<LowRankRows> low_rank_;
  std::vector<float> ratios_;  // For weight-decomposed changes.
  bool by_column_ = false;     // Ratios are per column, else per row.
};

// A vector in a tensor's dtype.
Tensor vector_like(std::span<const float> values, DType dtype, const FusedModule& module) {
  const auto size = static_cast<int>(values.size());
  Tensor like = float_tensor({size}, {});
  like.dtype = dtype;
  Pieces pieces(like, size);
  const auto numbers = mx::astype(mx::array(values.begin(), {size}, mx::float32), mx_dtype(dtype));
  require_finite(numbers, module);
  pieces.add(numbers);
  return pieces.finish();
}

kernels::WeightTensors fused_norm(const FusedModule& module, const kernels::WeightTensors& like) {
  auto values = to_floats(*module.change.weight);
  const auto base = to_floats(like.weight);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = blend(base[i], values[i], module.strength);
  }
  return {vector_like(values, like.weight.dtype, module), std::nullopt, std::nullopt, like.name};
}

}  // namespace

kernels::WeightTensors fused_weight(const FusedModule& module, const kernels::WeightTensors& like) {
  if (module.base.norm) {
    return fused_norm(module, like);
  }
  const FusedRows rows(module);
  const kernels::WeightFormat& format = module.format;
  const int all_rows = module.rows();
  const auto pieces = [&](const std::optional<Tensor>& tensor) {
    return tensor ? std::optional<Pieces>(std::in_place, *tensor, all_rows) : std::nullopt;
  };
  Pieces weight(like.weight, all_rows);
  std::optional<Pieces> scales = pieces(like.scales);
  std::optional<Pieces> biases = pieces(like.biases);
  const DType dtype = like.scales ? like.scales->dtype : like.weight.dtype;
  for (int first = 0; first < all_rows; first += kWeightRows) {
    const int count = std::min(kWeightRows, all_rows - first);
    const auto piece = mx::astype(rows.rows(first, count), mx_dtype(dtype));
    require_finite(piece, module);
    if (!scales) {
      weight.add(piece);
      continue;
    }
    const auto codes =
        mx::quantize(piece, format.group_size, format.bits, kernels::mlx_mode(format.kind));
    weight.add(codes.at(0));
    scales->add(codes.at(1));
    if (biases) {
      biases->add(codes.at(2));
    }
  }
  return {
      .weight = weight.finish(),
      .scales = scales ? std::optional(scales->finish()) : std::nullopt,
      .biases = biases ? std::optional(biases->finish()) : std::nullopt,
      .name = like.name,
  };
}

std::optional<Tensor> fused_bias(const FusedModule& module, DType dtype) {
  const ModuleSource& change = module.change;
  const bool own = change.bias || (change.low_rank && change.low_rank->bias);
  if (!own && !module.base.bias) {
    return std::nullopt;
  }
  auto values = base_bias(module.base);
  const std::vector<float> base = values;
  if (change.bias) {
    values = to_floats(*change.bias);
  }
  if (change.low_rank && change.low_rank->bias) {
    const auto added = to_floats(*change.low_rank->bias);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] += change.low_rank->scale * added[i];
    }
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = blend(base[i], values[i], module.strength);
  }
  return vector_like(values, dtype, module);
}

ModuleSource without_equals(const ModuleSource& change, const nn::Module& base) {
  ModuleSource result = change;
  if (base.norm) {
    return result;
  }
  if (change.weight && equals_base(base, *change.weight, change.name)) {
    result.weight.reset();
  }
  if (change.bias && to_floats(*change.bias) == base_bias(base)) {
    result.bias.reset();
  }
  return result;
}

}  // namespace saker::adapters
