// SPDX-License-Identifier: Apache-2.0
#pragma once

// Fits an adapter of llama.cpp to a model. Its file has the rows of Llama's queries and keys in the
// order of rotated pairs: the two rows of a pair are adjacent. In a model folder they are half a
// head apart, and only the model tells a head's width. Pure; any thread.

#include "saker/adapters/adapter_source.h"
#include "saker/models/model.h"

#include <cstdint>
#include <filesystem>

namespace saker::adapters {

// Brings rows into the folder's order for heads of `head_dim` rows. Throws kInvalidArgument unless
// the rows are whole heads.
void order_rows(AdapterSource& source, std::int64_t head_dim);

// As above for the model's heads; changes nothing if it is done, or for other forms. Throws
// kInvalidArgument for an adapter of another type of models.
void fit_to_model(AdapterSource& source, const models::Model& model);

// As above for a model's folder or GGUF file, of which only the configuration is read.
void fit_to_model(AdapterSource& source, const std::filesystem::path& model);

}  // namespace saker::adapters
