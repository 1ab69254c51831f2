// SPDX-License-Identifier: Apache-2.0
#pragma once

// Binds an adapter to one loaded model: checks it against the model's modules and packs it for the
// kernels.

#include "saker/adapters/adapter_source.h"
#include "saker/models/model.h"
#include "saker/nn/adapter.h"

#include <filesystem>
#include <memory>

namespace saker::adapters {

// Releases each tensor that is packed. Throws kInvalidArgument, naming modules that the model lacks
// or that have other shapes (an adapter of another base). Throws kUnsupported for features that we
// can't run. REQUIRES: on the engine's thread.
std::shared_ptr<const nn::Adapter> bind(AdapterSource source, const models::Model& model);

std::shared_ptr<const nn::Adapter> load_adapter(
    const std::filesystem::path& dir, const models::Model& model
);

}  // namespace saker::adapters
