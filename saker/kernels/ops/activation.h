// SPDX-License-Identifier: Apache-2.0
#pragma once

// Elementwise activations of MLPs, gated or not, float32 inside. Bits do not depend on shape or position.

#include "saker/kernels/mx.h"

#include <cstdint>

namespace saker::kernels {

enum class Activation : std::uint8_t {
  kLogistic,  // sigmoid(x), written 1 / (1 + exp(-x))
  kSilu,      // x * sigmoid(x)
  kGeluTanh,  // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
  kGelu,      // 0.5 x (1 + erf(x / sqrt(2)))
  kRelu2,     // max(x, 0)^2
  // Only gated: with g = min(gate, 7) and u = up between -7 and 7, g * sigmoid(1.702 g) * (u + 1).
  kSwigluOai,
  kSoftplus,  // log(1 + exp(x))
  kXielu,     // Only with factors, see xielu().
};

// Factors of xIELU (https://arxiv.org/abs/2411.13010), as the formula has them.
struct XieluFactors {
  float positive;
  float negative;
  float linear;
  float limit;  // Below 0: the largest number whose exponential is taken.
};

// From the numbers that checkpoints have.
XieluFactors xielu_factors(float alpha_p, float alpha_n, float beta, float eps);

// positive * x^2 + linear * x for x > 0, else negative * (exp(min(x, limit)) - 1 - x) + linear * x; x
// [N, F].
mx::array xielu(const mx::array& x, const XieluFactors& factors);

mx::array xielu_reference(const mx::array& x, const XieluFactors& factors);

// activation(gate) * up. `merged` [N, 2 * F] is the output of a merged projection: gate in columns
// [0, F), up in [F, 2F).
mx::array gated_activation(const mx::array& merged, Activation activation);

// As above, for gate and up [N, H, D] that lie anywhere.
mx::array gated_activation(const mx::array& gate, const mx::array& up, Activation activation);

// activation(x), x [N, F].
mx::array activation(const mx::array& x, Activation activation);

mx::array activation_reference(const mx::array& x, Activation activation);

mx::array gated_activation_reference(const mx::array& merged, Activation activation);

// softcap * tanh(x / softcap), elementwise (Gemma 2's final logits).
mx::array softcap(const mx::array& x, float cap);

}  // namespace saker::kernels
