// SPDX-License-Identifier: Apache-2.0
#pragma once

// The adapters that requests name, each loaded when it is first asked for and then kept until
// `kMaxAdapters` others were used since; those that run stay alive in any case. Or the one that is
// part of the model's weights. Threading: the engine's thread.

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
  static constexpr std::size_t kMaxAdapters = 16;  // And as many null adapters.

  // The adapter in the model's weights, see adapters::load_fused: nothing but it at strength 1 can
  // be used from now on. Its rows have its name and change nothing.
  void set_fused(const std::filesystem::path& dir, std::string identity);

  // Throws as loading does, and kInvalidArgument for a scale that is not finite or what can't run
  // beside a fused adapter.
  nn::AdapterUse use(const GenerateRequest& request, const models::Model& model);

  nn::AdapterUse use(const View& view, const models::Model& model);

  // The adapter of a folder.
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
    std::uint64_t used = 0;  // When, in uses.
  };

  // The adapter of this key, made by `make` unless it is kept.
  template <typename Map, typename Make>
  std::shared_ptr<const nn::Adapter> keep(Map& map, const typename Map::key_type& key, Make make);

  std::uint64_t uses_ = 0;
  std::map<std::filesystem::path, Kept> loaded_;
  std::map<NullKey, Kept> nulls_;
  std::filesystem::path fused_dir_;
  std::shared_ptr<const nn::Adapter> fused_;  // Null: no adapter is in the weights.
};

}  // namespace saker::engine
