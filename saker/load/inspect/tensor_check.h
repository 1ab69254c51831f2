// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whether the tensors of a checkpoint are those that its model takes, from their names, dtypes and
// shapes alone: the same judgement for files that are here and for headers that were read from
// afar.

#include "saker/load/inspect/tensor_headers.h"
#include "saker/models/tensor_roster.h"

namespace saker::load {

// Throws kCorruptData naming the first tensor that is missing or has a shape that the
// configuration contradicts. Tensors that no layer takes are passed over.
void check_tensors(const models::TensorRoster& roster, const Headers& headers);

}  // namespace saker::load
