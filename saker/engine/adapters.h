// SPDX-License-Identifier: Apache-2.0
#pragma once

// The adapters that requests name, each loaded when it is first asked for and then kept. Threading:
// the engine's thread.

#include "saker/engine/request.h"
#include "saker/engine/views.h"
#include "saker/models/model.h"
#include "saker/nn/adapter.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <tuple>

namespace saker::engine {

class Adapters {
 public:
  // Throws as loading does, and kInvalidArgument for a scale that is not finite.
  nn::AdapterUse use(const GenerateRequest& request, const models::Model& model);

  nn::AdapterUse use(const View& view, const models::Model& model);

  // The adapter of a folder.
  std::shared_ptr<const nn::Adapter> load(
      const std::filesystem::path& dir, const models::Model& model
  );

 private:
  // Folder, seed, init_scale and rank_scale.
  using NullKey = std::tuple<std::filesystem::path, std::uint64_t, double, double>;

  std::shared_ptr<const nn::Adapter> null_adapter(const View& view, const models::Model& model);

  std::map<std::filesystem::path, std::shared_ptr<const nn::Adapter>> loaded_;
  std::map<NullKey, std::shared_ptr<const nn::Adapter>> nulls_;  // A few.
};

}  // namespace saker::engine
