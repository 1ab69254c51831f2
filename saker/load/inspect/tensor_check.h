// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks that a checkpoint has its model's tensors, from names, dtypes and shapes alone. Local
// files and headers read from the hub are judged alike.

#include "saker/load/inspect/tensor_headers.h"
#include "saker/models/tensor_roster.h"

namespace saker::load {

// Throws kCorruptData naming the first tensor that is missing or whose shape contradicts the
// configuration. Ignores tensors that no layer uses.
void check_tensors(const models::TensorRoster& roster, const Headers& headers);

}  // namespace saker::load
