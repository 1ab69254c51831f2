// SPDX-License-Identifier: Apache-2.0
#pragma once

// The adapters that requests name, each loaded when it is first asked for and then kept. Threading:
// the engine's thread.

#include "saker/engine/request.h"
#include "saker/models/model.h"
#include "saker/nn/adapter.h"

#include <filesystem>
#include <map>
#include <memory>

namespace saker::engine {

class Adapters {
 public:
  // Throws as loading does, and kInvalidArgument for a scale that is not finite.
  nn::AdapterUse use(const GenerateRequest& request, const models::Model& model);

  // The adapter of a folder.
  std::shared_ptr<const nn::Adapter> load(
      const std::filesystem::path& dir, const models::Model& model
  );

 private:
  std::map<std::filesystem::path, std::shared_ptr<const nn::Adapter>> loaded_;
};

}  // namespace saker::engine
