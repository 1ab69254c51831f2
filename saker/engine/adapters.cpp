// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/adapters.h"

#include "saker/adapters/bind.h"
#include "saker/base/error.h"

#include <cmath>

namespace saker::engine {

nn::AdapterUse Adapters::use(const GenerateRequest& request, const models::Model& model) {
  const auto strength = static_cast<float>(request.adapter_scale);
  require(
      std::isfinite(strength),
      ErrorCode::kInvalidArgument,
      "adapter_scale: got {}, expected a finite number",
      request.adapter_scale
  );
  if (request.adapter.empty()) {
    return {};
  }
  return {load(request.adapter, model), strength};
}

std::shared_ptr<const nn::Adapter> Adapters::load(
    const std::filesystem::path& dir, const models::Model& model
) {
  std::error_code unreadable;
  const auto key = std::filesystem::weakly_canonical(dir, unreadable);
  auto& adapter = loaded_[unreadable ? dir : key];
  if (adapter == nullptr) {
    adapter = adapters::load_adapter(dir, model);
  }
  return adapter;
}

}  // namespace saker::engine
