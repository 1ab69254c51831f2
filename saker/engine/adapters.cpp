// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/adapters.h"

#include "saker/adapters/bind.h"
#include "saker/adapters/null_adapter.h"
#include "saker/base/error.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <system_error>
#include <utility>

namespace saker::engine {
namespace {

// One key per folder; a name in the hub cache stays as it is.
std::filesystem::path key_of(const std::filesystem::path& dir) {
  std::error_code unreadable;
  auto key = std::filesystem::weakly_canonical(dir, unreadable);
  return unreadable ? dir : key;
}

}  // namespace

void Adapters::set_fused(const std::filesystem::path& dir, std::string identity) {
  fused_dir_ = dir;
  fused_ = std::make_shared<const nn::Adapter>(
      std::move(identity), nn::Adapter::Changes{}, std::nullopt
  );
}

nn::AdapterUse Adapters::use_fused(const View& view) const {
  require(
      !view.adapter.empty() && key_of(view.adapter) == key_of(fused_dir_) && view.strength == 1.0 &&
          !view.null,
      ErrorCode::kInvalidArgument,
      "view {:?}: the adapter {} has a vocabulary of its own and is in the model's weights: at "
      "strength 1 it can be asked for, nothing else; 'saker convert --fuse' makes a model of it",
      view.key,
      fused_dir_.string()
  );
  return {fused_, 1.0F};
}

nn::AdapterUse Adapters::use(const Placement& placement, const models::Model& model) {
  require(
      std::isfinite(static_cast<float>(placement.adapter_scale)),
      ErrorCode::kInvalidArgument,
      "adapter_scale: got {}, expected a finite number",
      placement.adapter_scale
  );
  return use(
      View{
          .key = placement.adapter.empty() ? "base" : "adapter",
          .adapter = placement.adapter,
          .strength = placement.adapter_scale,
          .null = placement.adapter_null
      },
      model
  );
}

nn::AdapterUse Adapters::use(const View& view, const models::Model& model) {
  if (fused_) {
    return use_fused(view);
  }
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
  if (map.size() >= kMaxAdapters) {
    map.erase(std::ranges::min_element(map, {}, [](const auto& entry) { return entry.second.used; })
    );
  }
  map[key] = {made, uses_};
  return made;
}

std::shared_ptr<const nn::Adapter> Adapters::null_adapter(
    const View& view, const models::Model& model
) {
  require(
      std::isfinite(view.null->init_scale) && std::isfinite(view.null->rank_scale),
      ErrorCode::kInvalidArgument,
      "null adapter: scales {} and {}, expected finite numbers",
      view.null->init_scale,
      view.null->rank_scale
  );
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
  return keep(loaded_, key_of(dir), [&] { return adapters::bind(read(dir), model); });
}

bool Adapters::is_read_first(const std::filesystem::path& dir) const {
  return !dir.empty() && !fused_ && !loaded_.contains(key_of(dir));
}

adapters::AdapterSource Adapters::read(const std::filesystem::path& dir) {
  adapters::AdapterSource source = adapters::read_adapter(dir);
  for (const std::string& warning : source.warnings) {
    spdlog::warn("{}", warning);
  }
  return source;
}

void Adapters::keep_read(
    const std::filesystem::path& dir, adapters::AdapterSource source, const models::Model& model
) {
  keep(loaded_, key_of(dir), [&] { return adapters::bind(std::move(source), model); });
}

}  // namespace saker::engine
