// SPDX-License-Identifier: Apache-2.0
#pragma once

// An adapter for one loaded model: checked against its modules and packed for its kernels.

#include "saker/adapters/adapter_source.h"
#include "saker/models/model.h"
#include "saker/nn/adapter.h"

#include <filesystem>
#include <memory>

namespace saker::adapters {

// Lets go of each tensor that is packed. Throws kInvalidArgument naming the modules that the model
// lacks or that have other shapes (an adapter of another base), kUnsupported for what we can't run.
// REQUIRES: on the engine's thread.
std::shared_ptr<const nn::Adapter> bind(AdapterSource source, const models::Model& model);

std::shared_ptr<const nn::Adapter> load_adapter(
    const std::filesystem::path& dir, const models::Model& model
);

}  // namespace saker::adapters
