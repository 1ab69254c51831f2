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
};

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
