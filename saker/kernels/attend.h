// SPDX-License-Identifier: Apache-2.0
#pragma once

// Fused attention over cached rows, span by span, without a mask array or an [L, S] matrix.
//
// The pass's rows [N] are cut into spans; each span belongs to one sequence and holds its rows at
// consecutive positions. The primitive writes the span's k and v into the store and then lets each
// row attend to the positions up to its own, or to all of its span. Softmax runs online over blocks
// of kPageRows keys aligned to absolute position 0, in order, in float32; so the bits of a row
// depend only on its position and the cached rows, not on chunks, spans beside it or threads.
// Algorithm: FlashAttention (https://arxiv.org/abs/2205.14135) with a fixed block order.

#include "saker/kernels/kv_store.h"
#include "saker/kernels/mx.h"
#include "saker/kernels/rope.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace saker::kernels {

struct AttendSpan {
  int first_row = 0;  // In q, k and v.
  int row_count = 0;
  std::int64_t first_position = 0;  // Of the first row.
  std::shared_ptr<KvStore> store;   // `prepare` was called for the span's positions.
  // The cache's limit: a row at position t sees positions < keep and positions > t - window. 0: all
  // positions.
  int window = 0;
  int keep = 0;
};

struct AttendOptions {
  float scale = 1.0F;    // Multiplies q . k.
  float softcap = 0.0F;  // > 0: scores become softcap * tanh(score / softcap).
  int window =
      0;  // The model's sliding window, 0 for none: the smaller of this and the span's counts.
  // Rows also see the later rows of their own span, up to the model's window.
  bool bidirectional = false;
};

// q [N, H, D], k [N, H_kv, D], v [N, H_kv, D_v] (H a multiple of H_kv) -> [N, H, D_v] in q's dtype.
mx::array attend(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    std::vector<AttendSpan> spans,
    const AttendOptions& options
);

// The heads that a joined projection [N, (H + 2 H_kv) D] holds side by side, queries, keys, values,
// and what becomes of queries and keys before they meet.
struct MergedHeads {
  struct Norms {  // RMS norms over each head, see rms_norm: weights [D] float32.
    mx::array q;
    mx::array k;
    float eps;
    // Of q's heads and then k's: contiguous stores need these, with even D, and make them in each
    // call if there are none.
    std::optional<HeadWeights> by_head = std::nullopt;
  };

  int query_heads;  // H
  int kv_heads;
  int head_dim;                // Of values too.
  std::optional<Norms> norms;  // First, then the rotation.
  mx::array cos;               // As rope() takes them.
  mx::array sin;
};

// Whether attend_joined takes these: pages of one form, or contiguous stores.
bool attends_joined(const std::vector<AttendSpan>& spans);

// What rms_norm, rope and attend of the heads' slices give -> [N, H * D]. Over pages to the bit, in
// one operation and as float32; a `joined` that is a product not yet computed becomes a part of it.
// Over contiguous stores by few operations of MLX, in joined's dtype.
mx::array attend_joined(
    const mx::array& joined,
    const MergedHeads& heads,
    const std::vector<AttendSpan>& spans,
    const AttendOptions& options
);

// Attends to rows that an earlier `attend` of this pass stored, for layers that share its keys and
// values: `spans` are those that it was given, q [N, H, D] -> [N, H, D_v]. q must depend on what
// that call returned.
mx::array attend_stored(
    const mx::array& q, std::vector<AttendSpan> spans, const AttendOptions& options
);

// The same as `attend` for one span from plain MLX operations over given rows, oldest first: keys
// [H_kv, S, D], values [H_kv, S, D_v], positions [S] of those rows, q [n, H, D] at positions
// first.. -> [n, H, D_v]. The truth in tests.
mx::array attend_reference(
    const mx::array& q,
    const mx::array& keys,
    const mx::array& values,
    const mx::array& positions,
    std::int64_t first_position,
    const AttendOptions& options
);

}  // namespace saker::kernels
