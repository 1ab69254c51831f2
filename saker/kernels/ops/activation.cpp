// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/activation.h"

#include "saker/base/error.h"
#include "saker/base/portable_math.h"
#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/cpu/dispatch/row_bodies.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/gpu/compile_on_gpu.h"
#include "saker/kernels/layout/row_tiles.h"
#include "saker/kernels/ops/cpu_operation.h"
#include "saker/kernels/ops/gated_rows.h"
#include "saker/kernels/ops/strided_rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace saker::kernels {
namespace {

// Elements of a row per call. Rows are cut, so that threads share a single wide row too.
constexpr int kPiece = 2048;

int pieces_of(int width) {
  return (width + kPiece - 1) / kPiece;
}

// Input merged [N, 2 F]; output [N, F].
struct GatedBody {
  GatedFunction function;

  auto operator()(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) const {
    return [function = function, merged = StridedRows(inputs[0]), out = outputs[0].data<float>()](
           ) mutable {
      const int width = merged.width() / 2;
      activate(function, merged.resolve(), merged.rows(), width, out);
    };
  }
};

// Inputs gate and up [N, H, D]; output like them.
struct GatedPairBody {
  GatedFunction function;

  auto operator()(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) const {
    return [function = function,
            gate = StridedRows(inputs[0]),
            up = StridedRows(inputs[1]),
            out = outputs[0].data<float>()]() mutable {
      const HeadRows gates = gate.resolve();
      const HeadRows ups = up.resolve();
      const int heads = gate.heads();
      const int width = gate.width();
      each_row(gate.rows() * heads, 8L * width, [&](int index) {
        const GatedRow task{
            StridedRows::at(gates, index / heads, index % heads),
            StridedRows::at(ups, index / heads, index % heads),
            out + static_cast<std::ptrdiff_t>(index) * width,
        };
        function(task, width);
      });
    };
  }
};

// Rows [rows, width] -> out, on all threads.
void activate_alone(GatedFunction function, const HeadRows& x, int rows, int width, float* out) {
  static const std::vector<float> ones(kPiece, 1.0F);
  const int pieces = pieces_of(width);
  each_row(rows * pieces, 8L * std::min(width, kPiece), [&](int index) {
    const int row = index / pieces;
    const int first = index % pieces * kPiece;
    const GatedRow task{
        StridedRows::at(x, row, 0) + first,
        ones.data(),
        out + static_cast<std::ptrdiff_t>(row) * width + first,
    };
    function(task, std::min(kPiece, width - first));
  });
}

// Input x [N, F]; output like it. The gated body with ups of 1.
struct ActivationBody {
  GatedFunction function;

  auto operator()(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) const {
    return [function = function, x = StridedRows(inputs[0]), out = outputs[0].data<float>()](
           ) mutable { activate_alone(function, x.resolve(), x.rows(), x.width(), out); };
  }
};

// Any 2-dimensional input; output like it.
struct SoftcapBody {
  const RowBodies* bodies;
  float cap;

  auto operator()(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) const {
    return [bodies = bodies, cap = cap, x = StridedRows(inputs[0]), out = outputs[0].data<float>()](
           ) mutable {
      const HeadRows from = x.resolve();
      const int width = x.width();
      const int pieces = pieces_of(width);
      each_row(x.rows() * pieces, 8L * std::min(width, kPiece), [&](int index) {
        const int row = index / pieces;
        const int first = index % pieces * kPiece;
        bodies->softcap(
            StridedRows::at(from, row, 0) + first,
            cap,
            out + static_cast<std::ptrdiff_t>(row) * width + first,
            std::min(kPiece, width - first)
        );
      });
    };
  }
};

// Exact on every machine, so that it needs no body per instruction set.
void gated_relu2(const GatedRow& row, int width) {
  std::transform(row.gate, row.gate + width, row.up, row.out, [](float gate, float up) {
    const float positive = gate < 0.0F ? 0.0F : gate;  // NaN stays.
    return positive * positive * up;
  });
}

// The larger of x and 0, and what is left. Doubles that are the same on every machine.
float softplus(float x) {
  const double wide = x;
  const double rest = portable_exp(-std::abs(wide));
  const double tail = rest < 1e-8 ? rest : portable_log(1.0 + rest);
  return static_cast<float>(std::max(wide, 0.0) + tail);
}

void gated_softplus(const GatedRow& row, int width) {
  std::transform(row.gate, row.gate + width, row.up, row.out, [](float gate, float up) {
    return softplus(gate) * up;
  });
}

// Input x [N, F]; output like it.
struct XieluBody {
  const RowBodies* bodies;
  XieluFactors factors;

  auto operator()(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) const {
    return [own = *this, x = StridedRows(inputs[0]), out = outputs[0].data<float>()]() mutable {
      const HeadRows from = x.resolve();
      const int width = x.width();
      const int pieces = pieces_of(width);
      const auto [positive, negative, linear, limit] = own.factors;
      const XieluRow shared{nullptr, nullptr, positive, negative, linear, limit};
      each_row(x.rows() * pieces, 8L * std::min(width, kPiece), [&](int index) {
        const int row = index / pieces;
        const int first = index % pieces * kPiece;
        XieluRow task = shared;
        task.x = StridedRows::at(from, row, 0) + first;
        task.out = out + static_cast<std::ptrdiff_t>(row) * width + first;
        own.bodies->xielu(task, std::min(kPiece, width - first));
      });
    };
  }
};

void check(const mx::array& merged) {
  require(
      merged.ndim() == 2 && merged.size() > 0 && merged.shape(1) % 2 == 0,
      ErrorCode::kInvalidArgument,
      "activation: expected rows of gate and up, got {} dimensions of {} elements",
      merged.ndim(),
      merged.size()
  );
}

mx::array activated(const mx::array& x, Activation activation) {
  const mx::array half(0.5F);
  const mx::array one(1.0F);
  switch (activation) {
    case Activation::kLogistic:
      return mx::sigmoid(x);
    case Activation::kSilu:
      return x * mx::sigmoid(x);
    case Activation::kGeluTanh: {
      const auto inner = x + mx::array(0.044715F) * x * x * x;
      return half * x * (one + mx::tanh(mx::array(std::sqrt(2.0F / 3.14159265358979F)) * inner));
    }
    case Activation::kGelu:
      return half * x * (one + mx::erf(x * mx::array(std::sqrt(0.5F))));
    case Activation::kRelu2:
      return mx::square(mx::maximum(x, mx::array(0.0F)));
    case Activation::kSoftplus:
      return mx::logaddexp(x, mx::array(0.0F));
    case Activation::kSwigluOai:
    case Activation::kXielu:
      break;
  }
  throw Error(ErrorCode::kInternal, "activation: unknown kind");
}

// Inputs gate, up -> activation(gate) * up, in up's dtype.
template <Activation kKind>
std::vector<mx::array> gate_with(const std::vector<mx::array>& inputs) {
  const auto gate = activated(mx::astype(inputs[0], mx::float32), kKind);
  return {mx::astype(gate * mx::astype(inputs[1], mx::float32), inputs[1].dtype())};
}

std::vector<mx::array> gate_swiglu_oai(const std::vector<mx::array>& inputs) {
  const mx::array limit(7.0F);
  const auto gate = mx::minimum(mx::astype(inputs[0], mx::float32), limit);
  const auto up = mx::clip(mx::astype(inputs[1], mx::float32), mx::array(-7.0F), limit);
  const auto activated = gate * mx::sigmoid(mx::array(1.702F) * gate);
  return {mx::astype(activated * (up + mx::array(1.0F)), inputs[1].dtype())};
}

Operations gate_of(Activation activation) {
  switch (activation) {
    case Activation::kLogistic:
      return gate_with<Activation::kLogistic>;
    case Activation::kSilu:
      return gate_with<Activation::kSilu>;
    case Activation::kGeluTanh:
      return gate_with<Activation::kGeluTanh>;
    case Activation::kGelu:
      return gate_with<Activation::kGelu>;
    case Activation::kRelu2:
      return gate_with<Activation::kRelu2>;
    case Activation::kSwigluOai:
      return gate_swiglu_oai;
    case Activation::kSoftplus:
      return gate_with<Activation::kSoftplus>;
    case Activation::kXielu:
      break;
  }
  throw Error(ErrorCode::kInternal, "activation: unknown kind");
}

}  // namespace

GatedFunction gated_function(Activation activation) {
  const RowBodies& bodies = *kernel_table().rows;
  switch (activation) {
    case Activation::kLogistic:
      return bodies.gated_logistic;
    case Activation::kSilu:
      return bodies.gated_silu;
    case Activation::kGeluTanh:
      return bodies.gated_gelu_tanh;
    case Activation::kGelu:
      return bodies.gated_gelu;
    case Activation::kRelu2:
      return gated_relu2;
    case Activation::kSwigluOai:
      return bodies.gated_swiglu_oai;
    case Activation::kSoftplus:
      return gated_softplus;
    case Activation::kXielu:
      break;
  }
  throw Error(ErrorCode::kInternal, "activation: unknown kind");
}

void activate(GatedFunction function, const HeadRows& merged, int rows, int width, float* out) {
  const int pieces = pieces_of(width);
  each_row(rows * pieces, 8L * std::min(width, kPiece), [&](int index) {
    const int row = index / pieces;
    const int first = index % pieces * kPiece;
    const float* gate = StridedRows::at(merged, row, 0) + first;
    const GatedRow task{
        gate,
        gate + width,
        out + static_cast<std::ptrdiff_t>(row) * width + first,
    };
    function(task, std::min(kPiece, width - first));
  });
}

mx::array gated_activation(const mx::array& merged, Activation activation) {
  check(merged);
  if (!on_cpu() || merged.dtype() != mx::float32) {
    return gated_activation_reference(merged, activation);
  }
  const mx::Shape shape = {merged.shape(0), merged.shape(1) / 2};
  return cpu_operation("SakerGated", shape, {merged}, GatedBody{gated_function(activation)});
}

mx::array gated_activation(const mx::array& gate, const mx::array& up, Activation activation) {
  require(
      gate.ndim() == 3 && gate.size() > 0 && gate.shape() == up.shape(),
      ErrorCode::kInvalidArgument,
      "activation: a gate of {} elements does not fit {}",
      gate.size(),
      up.size()
  );
  if (!on_cpu() || gate.dtype() != mx::float32 || up.dtype() != mx::float32) {
    return compile_on_gpu(gate_of(activation), {gate, up}).front();
  }
  const GatedPairBody body{gated_function(activation)};
  return cpu_operation("SakerGatedPair", gate.shape(), {gate, up}, body);
}

mx::array gated_activation_reference(const mx::array& merged, Activation activation) {
  check(merged);
  const int width = merged.shape(1) / 2;
  const auto gate = mx::slice(merged, {0, 0}, {merged.shape(0), width});
  const auto up = mx::slice(merged, {0, width}, merged.shape());
  return compile_on_gpu(gate_of(activation), {gate, up}).front();
}

mx::array activation(const mx::array& x, Activation activation) {
  require(
      x.ndim() == 2 && x.size() > 0 && activation != Activation::kSwigluOai &&
          activation != Activation::kXielu,
      ErrorCode::kInvalidArgument,
      "activation: expected rows of one that needs no gate, got {} dimensions of {} elements",
      x.ndim(),
      x.size()
  );
  if (!on_cpu() || x.dtype() != mx::float32) {
    return activation_reference(x, activation);
  }
  const ActivationBody body{gated_function(activation)};
  return cpu_operation("SakerActivation", x.shape(), {x}, body);
}

mx::array activation_reference(const mx::array& x, Activation activation) {
  return mx::astype(activated(mx::astype(x, mx::float32), activation), x.dtype());
}

XieluFactors xielu_factors(float alpha_p, float alpha_n, float beta, float eps) {
  return {softplus(alpha_p), beta + softplus(alpha_n), beta, eps};
}

mx::array xielu(const mx::array& x, const XieluFactors& factors) {
  require(
      x.ndim() == 2 && x.size() > 0,
      ErrorCode::kInvalidArgument,
      "xielu: expected rows, got {} dimensions of {} elements",
      x.ndim(),
      x.size()
  );
  if (!on_cpu() || x.dtype() != mx::float32) {
    return xielu_reference(x, factors);
  }
  return cpu_operation("SakerXielu", x.shape(), {x}, XieluBody{kernel_table().rows, factors});
}

mx::array xielu_reference(const mx::array& x, const XieluFactors& factors) {
  const auto wide = mx::astype(x, mx::float32);
  const auto line = wide * mx::array(factors.linear);
  const auto above = mx::array(factors.positive) * mx::square(wide) + line;
  const auto curve = mx::expm1(mx::minimum(wide, mx::array(factors.limit))) - wide;
  const auto below = mx::array(factors.negative) * curve + line;
  return mx::astype(mx::where(mx::greater(wide, mx::array(0.0F)), above, below), x.dtype());
}

mx::array softcap(const mx::array& x, float cap) {
  require(
      cap > 0 && std::isfinite(cap),
      ErrorCode::kInvalidArgument,
      "softcap: got {}, expected a positive number",
      cap
  );
  if (!on_cpu() || x.dtype() != mx::float32 || x.size() == 0) {
    const mx::array limit(cap, x.dtype());
    return limit * mx::tanh(x / limit);
  }
  const auto rows = x.ndim() == 2 ? x : mx::reshape(x, {-1, x.ndim() > 0 ? x.shape(-1) : 1});
  const SoftcapBody body{kernel_table().rows, cap};
  auto out = cpu_operation("SakerSoftcap", rows.shape(), {rows}, body);
  return x.ndim() == 2 ? out : mx::reshape(out, x.shape());
}

}  // namespace saker::kernels
