// SPDX-License-Identifier: Apache-2.0
#pragma once

// Proof, while an answer runs, that drafts leave its bits alone. Before a pass checks draft tokens,
// its rows run one by one on a cache::Speculation, as plain decoding would run them: the live
// caches see nothing of it. Afterwards both passes' logits are compared bit by bit, rows of
// rejected drafts included. A round costs its plain passes on top. Threading: the thread that owns
// MLX.

#include "saker/generate/pass.h"
#include "saker/models/model.h"

#include <vector>

namespace saker::generate {

class SpeculationCheck {
 public:
  // Runs the span's tokens in passes of one token each and keeps the logits of its wanted rows.
  // REQUIRES: the span's cache has no open transaction.
  SpeculationCheck(const models::Model& model, const PassSpan& span);

  // Compares rows [first_row, first_row + number of wanted rows) of the joint pass. Throws kInternal
  // for the first number that differs.
  void compare(RowLogits& joint, int first_row);

  int rows() const { return static_cast<int>(plain_.size()); }

 private:
  std::vector<RowLogits> plain_;  // One row each.
};

}  // namespace saker::generate
