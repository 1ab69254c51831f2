// SPDX-License-Identifier: Apache-2.0
#pragma once

// Token sequences to the vectors that an embedding model has for them: pooled rows, dense layers,
// cut to the first elements, unit length. Also the scores of its classifier. REQUIRES: called on the
// thread that owns MLX.

#include "saker/embed/pooled_rows.h"
#include "saker/models/model.h"

#include <span>
#include <vector>

namespace saker::embed {

struct VectorOptions {
  PoolOptions pool;
  bool normalize = true;  // Each vector is divided by its length; a vector of zeros stays.
  int dimensions = 0;     // Keeps this many first elements; 0: all.
};

// One vector per sequence. Throws as `pool_rows`; kInvalidArgument for more dimensions than the
// model's vectors have; kUnsupported, with the reason, for a model that cannot embed texts.
std::vector<std::vector<float>> text_vectors(
    const models::Model& model, std::span<const TokenSpan> sequences, const VectorOptions& options
);

// The classifier's scores of each sequence, raw. It says which rows it reads: `pooling` is ignored. Throws as `pool_rows`, kUnsupported
// without a classifier.
std::vector<std::vector<float>> class_scores(
    const models::Model& model, std::span<const TokenSpan> sequences, const PoolOptions& options
);

// The dimensions that a request may ask for: throws kInvalidArgument unless 0 <= dimensions <= size.
void check_dimensions(int dimensions, int size);

}  // namespace saker::embed
