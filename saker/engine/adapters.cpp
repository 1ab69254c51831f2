// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/adapters.h"

#include "saker/adapters/bind.h"
#include "saker/adapters/null_adapter.h"
#include "saker/base/error.h"

#include <cmath>
#include <utility>

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

nn::AdapterUse Adapters::use(const View& view, const models::Model& model) {
  if (view.adapter.empty()) {
    return {};
  }
  const auto strength = static_cast<float>(view.strength);
  require(
      std::isfinite(strength),
      ErrorCode::kInvalidArgument,
      "view {:?}: strength is {}, expected a finite number",
      view.key,
      view.strength
  );
  return {view.null ? null_adapter(view, model) : load(view.adapter, model), strength};
}

std::shared_ptr<const nn::Adapter> Adapters::null_adapter(
    const View& view, const models::Model& model
) {
  constexpr std::size_t kMostNulls = 16;
  const NullKey key{view.adapter, view.null->seed, view.null->init_scale, view.null->rank_scale};
  if (const auto found = nulls_.find(key); found != nulls_.end()) {
    return found->second;
  }
  const adapters::NullOptions options{
      .seed = view.null->seed,
      .init_scale = view.null->init_scale,
      .rank_scale = view.null->rank_scale,
  };
  auto null =
      adapters::bind(adapters::null_adapter(adapters::read_adapter(view.adapter), options), model);
  if (nulls_.size() >= kMostNulls) {
    nulls_.clear();
  }
  return nulls_[key] = std::move(null);
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
