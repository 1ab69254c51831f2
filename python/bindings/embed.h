// SPDX-License-Identifier: Apache-2.0
#pragma once

// Vectors of texts and scores of documents, as NumPy arrays.

#include "python/bindings/model.h"
#include <nanobind/nanobind.h>

namespace saker::python {

// Adds `embed` and `rerank` to the class.
void bind_embed(nanobind::class_<Model>& model);

}  // namespace saker::python
