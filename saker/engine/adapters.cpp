// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/adapters.h"

#include "saker/adapters/bind.h"
#include "saker/adapters/null_adapter.h"
#include "saker/base/error.h"

#include <algorithm>
#include <cmath>
#include <system_error>

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
  return use(
      View{
          .key = "adapter",
          .adapter = request.adapter,
          .strength = strength,
          .null = request.adapter_null
      },
      model
  );
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

template <typename Map, typename Make>
std::shared_ptr<const nn::Adapter> Adapters::keep(
    Map& map, const typename Map::key_type& key, Make make
) {
  ++uses_;
  if (const auto found = map.find(key); found != map.end()) {
    found->second.used = uses_;
    return found->second.adapter;
  }
  std::shared_ptr<const nn::Adapter> made = make();
  if (map.size() >= kMostAdapters) {
    map.erase(std::ranges::min_element(map, {}, [](const auto& entry) { return entry.second.used; })
    );
  }
  map[key] = {made, uses_};
  return made;
}

std::shared_ptr<const nn::Adapter> Adapters::null_adapter(
    const View& view, const models::Model& model
) {
  const NullKey key{view.adapter, view.null->seed, view.null->init_scale, view.null->rank_scale};
  return keep(nulls_, key, [&] {
    const adapters::NullOptions options{
        .seed = view.null->seed,
        .init_scale = view.null->init_scale,
        .rank_scale = view.null->rank_scale,
    };
    return adapters::bind(
        adapters::null_adapter(adapters::read_adapter(view.adapter), options), model
    );
  });
}

std::shared_ptr<const nn::Adapter> Adapters::load(
    const std::filesystem::path& dir, const models::Model& model
) {
  std::error_code unreadable;
  const auto key = std::filesystem::weakly_canonical(dir, unreadable);
  return keep(loaded_, unreadable ? dir : key, [&] { return adapters::load_adapter(dir, model); });
}

}  // namespace saker::engine
