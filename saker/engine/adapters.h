// SPDX-License-Identifier: Apache-2.0
#pragma once

// Adapters that requests name. Each is loaded on first use and stays until `kMaxAdapters` others
// were used more recently; adapters of running requests stay alive in any case. Alternatively, the
// single adapter that is fused into the model's weights. Threading: the engine's thread, unless said.

#include "saker/adapters/adapter_source.h"
#include "saker/engine/request.h"
#include "saker/engine/views.h"
#include "saker/models/model.h"
#include "saker/nn/adapter.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <tuple>

namespace saker::engine {

class Adapters {
 public:
  static constexpr std::size_t kMaxAdapters = 16;  // For null adapters as well, counted separately.

  // Sets the adapter in the model's weights, see adapters::load_fused. From now on only this
  // adapter at strength 1 can be used. Tokens that use it carry its identity and change nothing.
  void set_fused(const std::filesystem::path& dir, std::string identity);

  // Throws what loading throws; kInvalidArgument for a scale that is not finite, and for any other
  // adapter or strength beside a fused adapter.
  nn::AdapterUse use(const Placement& placement, const models::Model& model);

  nn::AdapterUse use(const View& view, const models::Model& model);

  // True if `use` would read this adapter's files first; false without one.
  bool is_read_first(const std::filesystem::path& dir) const;
  // Reads an adapter's files. Any thread.
  static adapters::AdapterSource read(const std::filesystem::path& dir);
  // Keeps an adapter that was read. Throws as adapters::bind.
  void keep_read(
      const std::filesystem::path& dir, adapters::AdapterSource source, const models::Model& model
  );

  // Loads the adapter of a folder, unless it is kept.
  std::shared_ptr<const nn::Adapter> load(
      const std::filesystem::path& dir, const models::Model& model
  );

 private:
  // Folder, seed, init_scale and rank_scale.
  using NullKey = std::tuple<std::filesystem::path, std::uint64_t, double, double>;

  nn::AdapterUse use_fused(const View& view) const;
  std::shared_ptr<const nn::Adapter> null_adapter(const View& view, const models::Model& model);

  struct Kept {
    std::shared_ptr<const nn::Adapter> adapter;
    std::uint64_t used = 0;  // Time of the last use, counted in uses.
  };

  // Returns the adapter of this key; calls `make` unless it is kept.
  template <typename Map, typename Make>
  std::shared_ptr<const nn::Adapter> keep(Map& map, const typename Map::key_type& key, Make make);

  std::uint64_t uses_ = 0;
  std::map<std::filesystem::path, Kept> loaded_;
  std::map<NullKey, Kept> nulls_;
  std::filesystem::path fused_dir_;
  std::shared_ptr<const nn::Adapter> fused_;  // Null: no adapter is in the weights.
};

}  // namespace saker::engine
