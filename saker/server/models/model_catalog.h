// SPDX-License-Identifier: Apache-2.0
#pragma once

// The models that a server has: their names and adapters, facts for lists, counts; and the pool that
// loads them. Any thread may call any member.

#include "saker/engine/pool/model_details.h"
#include "saker/engine/pool/model_pool.h"
#include "saker/server/turns/served_model.h"

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::server {

// A model of the catalog, at one moment.
struct ModelCard {
  std::shared_ptr<const ModelNames> names;
  std::shared_ptr<const engine::ModelDetails> details;
  std::shared_ptr<Counters> counters;
  engine::PoolEntry state;

  const std::string& name() const { return names->names.front(); }

  // The name of the model that an adapter changes; none for the model's own names.
  std::optional<std::string> parent_of(std::string_view name) const;
};

struct CatalogOptions {
  std::size_t memory_bytes = 0;  // For all loaded models together.
  bool takes_any_name = false;   // Unknown names mean the first model.
};

class ModelCatalog {
 public:
  using Taker =
      std::function<void(std::shared_ptr<const ServedModel> model, std::exception_ptr error)>;

  explicit ModelCatalog(const CatalogOptions& options);

  // Adds a model; `model` needs no name and no aliases. Throws kInvalidArgument if another model or
  // adapter has one of the names.
  void add(ModelNames names, engine::ModelDetails details, engine::PoolModel model);

  // In the order of `add`.
  std::vector<ModelCard> cards() const;
  // The model of a name, which may be that of an adapter; an empty one means the first model. Throws
  // a 404 with the nearest names.
  ModelCard find(std::string_view name) const;

  // As the pool's members of these names, for what `find` finds.
  std::shared_ptr<const ServedModel> use_now(
      std::string_view name, std::optional<engine::KeepAlive> keep_alive
  );
  std::uint64_t ask(
      std::string_view name, std::optional<engine::KeepAlive> keep_alive, Taker taker
  );

  void cancel(std::uint64_t ticket) { pool_.cancel(ticket); }

  void unload(std::string_view name);

  // Loads the model and waits.
  void load(std::string_view name);

  // True if a model or adapter has this name.
  bool has(std::string_view name) const;

  // Throws a 400 for a name that is taken or can't be an adapter's.
  void add_adapter(std::string_view model, engine::NamedAdapter adapter);
  // The model that the adapter was of. Throws a 404.
  std::string remove_adapter(std::string_view name);

  std::size_t memory_bytes() const { return pool_.memory_bytes(); }

  // The longest LanguageModel::busy_seconds of all loaded models.
  double busy_seconds() const;

  // As the pool's.
  void close() { pool_.close(); }

 private:
  struct Model {
    std::shared_ptr<const ModelNames> names;
    std::shared_ptr<const engine::ModelDetails> details;
    std::shared_ptr<Counters> counters;
  };

  // REQUIRES of both: mutex_ is held.
  const Model* find_model(std::string_view name) const;
  void require_free(std::string_view name) const;

  Model known_model(std::string_view name) const;

  bool takes_any_name_;
  mutable std::mutex mutex_;
  std::vector<Model> models_;
  engine::ModelPool pool_;  // The last member: its thread ends first.
};

}  // namespace saker::server
