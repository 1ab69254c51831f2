// SPDX-License-Identifier: Apache-2.0
#pragma once

// Fused attention over cached rows, span by span, without a mask array or an [L, S] matrix.
//
// The pass's rows [N] are cut into spans. Each span belongs to one sequence and holds its rows at
// consecutive positions. The primitive writes the span's k and v into the store. Each row then
// attends to the positions up to its own, or to its whole span.
//
// Softmax runs online, in float32, over blocks of kPageRows keys in order, aligned to absolute
// position 0. So the bits of a row depend only on its position and the cached rows, not on chunks,
// other spans or threads. Algorithm: FlashAttention (https://arxiv.org/abs/2205.14135) with a fixed
// block order.

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/rope.h"
#include "saker/kernels/storage/kv_store.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace saker::kernels {

struct AttendSpan {
  int first_row = 0;  // In q, k and v.
  int row_count = 0;
  std::int64_t first_position = 0;  // The first row's.
  std::shared_ptr<KvStore> store;   // REQUIRES: prepared for the span's positions.
  // The cache's limit: a row at position t sees positions < keep and positions > t - window. 0: all
  // positions.
  int window = 0;
  int keep = 0;
};

struct AttendOptions {
  float scale = 1.0F;    // Multiplies q . k.
  float softcap = 0.0F;  // > 0: scores become softcap * tanh(score / softcap).
  // The model's sliding window, 0 for none. The smaller of this and the span's applies.
  int window = 0;
  // Rows also see the later rows of their own span, up to the model's window.
  bool bidirectional = false;
  // Attention sinks, [H] float32, dense and computed: exp(sink) of a row's head joins the sum that
  // its weights are divided by, as the last term. Scale and cap do not apply to it.
  std::optional<mx::array> sinks = std::nullopt;
  // Rows see positions of their own chunk alone, which begins at a multiple of this; 0: no chunks.
  // REQUIRES: not bidirectional.
  int chunk = 0;
};

// q [N, H, D], k [N, H_kv, D], v [N, H_kv, D_v] (H a multiple of H_kv) -> [N, H, D_v] in q's dtype.
mx::array attend(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    std::vector<AttendSpan> spans,
    const AttendOptions& options
);

// The heads of a merged projection [N, (H + 2 H_kv) D]: queries, keys and values side by side. Also
// what is applied to queries and keys before attention.
struct MergedHeads {
  struct Norms {  // RMS norm over each head, see rms_norm: weights [D], float32.
    mx::array q;
    mx::array k;
    float eps;
    // For q's heads, then k's. Contiguous stores with even D use them, and compute them in each
    // call if they are absent.
    std::optional<HeadWeights> by_head = std::nullopt;
  };

  int query_heads;  // H
  int kv_heads;
  int head_dim;                // The values' too.
  std::optional<Norms> norms;  // Applied before the rotation.
  mx::array cos;               // As for rope().
  mx::array sin;
  RopePairs pairs = RopePairs::kHalves;
};

// True if attend_merged supports these spans: all pages of one form, or all contiguous stores.
bool attends_merged(const std::vector<AttendSpan>& spans);

// attend() after rms_norm and rope on the heads' slices -> [N, H * D].
//
// Over pages: the same bits in one operation, in float32. Over contiguous stores: a few MLX
// operations, in merged's dtype.
mx::array attend_merged(
    const mx::array& merged,
    const MergedHeads& heads,
    const std::vector<AttendSpan>& spans,
    const AttendOptions& options
);

// Attends to rows that an earlier `attend` of this pass stored, for layers that share its keys and
// values. `spans` are the ones that call got; q [N, H, D] -> [N, H, D_v]. REQUIRES: q depends on
// that call's result.
mx::array attend_stored(
    const mx::array& q, std::vector<AttendSpan> spans, const AttendOptions& options
);

// Attention of one span over given rows, oldest first, from plain MLX operations: the reference in
// tests. Keys are [H_kv, S, D], values [H_kv, S, D_v], `positions` [S]. q [n, H, D] is at positions
// first_position.. -> [n, H, D_v].
mx::array attend_reference(
    const mx::array& q,
    const mx::array& keys,
    const mx::array& values,
    const mx::array& positions,
    std::int64_t first_position,
    const AttendOptions& options
);

}  // namespace saker::kernels
