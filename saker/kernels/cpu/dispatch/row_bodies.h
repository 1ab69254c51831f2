// SPDX-License-Identifier: Apache-2.0
#pragma once

// Bodies of operations on single rows: norms, rotary embedding and elementwise curves. A body sees
// one row only, so a row's bits cannot depend on another. Inputs need no alignment. Outputs do not
// overlap inputs, except that a norm may write over its x or residual, a rotation over its x, and a
// gated activation over its gate.

#include <cstdint>

namespace saker::kernels {

struct NormRow {
  const float* x;
  const float* residual;  // Added to x first; null for none.
  const float* weight;
  float* sum;  // (x + residual * residual_scale) * scale; null when there is no residual.
  float* normed;
  float scale = 1.0F;
  float residual_scale = 1.0F;
  const float* bias = nullptr;  // Added to the result; null for none. LayerNorm only.
};

struct RopeRow {
  const float* x;
  const float* cos;
  const float* sin;
  float* out;
};

struct GatedRow {
  const float* gate;
  const float* up;
  float* out;
};

struct XieluRow {
  const float* x;
  float* out;
  float positive;
  float negative;
  float linear;
  float limit;
};

struct RowBodies {
  void (*rms_norm)(const NormRow& row, int width, float eps);
  void (*layer_norm)(const NormRow& row, int width, float eps);
  // Rotates pairs (i, i + half) for i < half, copies the rest.
  void (*rope)(const RopeRow& row, int half, int width);
  // As rope, for pairs (2 i, 2 i + 1).
  void (*rope_neighbours)(const RopeRow& row, int half, int width);
  void (*gated_logistic)(const GatedRow& row, int width);
  void (*gated_silu)(const GatedRow& row, int width);
  void (*gated_gelu_tanh)(const GatedRow& row, int width);
  void (*gated_gelu)(const GatedRow& row, int width);
  void (*gated_swiglu_oai)(const GatedRow& row, int width);
  void (*xielu)(const XieluRow& row, int width);
  void (*softcap)(const float* x, float cap, float* out, int width);
};

}  // namespace saker::kernels
