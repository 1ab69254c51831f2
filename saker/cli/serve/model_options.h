// SPDX-License-Identifier: Apache-2.0
#pragma once

// The models that `serve` has: options, and the catalog that they make.

#include "saker/cli/options/model_args.h"
#include "saker/server/admin/model_routes.h"
#include "saker/server/kv_events/publisher.h"
#include "saker/server/models/model_catalog.h"

#include <CLI/CLI.hpp>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace saker::cli {

struct ModelOptions {
  ModelArgs common;  // For all of them; its `model` is not used.
  std::vector<std::string> models;
  std::string presets_file;
  std::vector<std::string> aliases;
  std::vector<std::string> adapters;
  bool takes_any_name = false;
  std::optional<std::size_t> memory;
  std::optional<engine::KeepAlive> keep_alive;
  std::filesystem::path adapter_dir;
  bool allows_pull = false;
  std::shared_ptr<server::kv_events::Publisher> kv_events = {};  // Null: nobody hears of rows.
};

void add_model_options(CLI::App& command, ModelOptions& options);

// The models; those that are pinned are loaded. A single one of the command line is. Throws what is
// wrong with them.
std::shared_ptr<server::ModelCatalog> make_catalog(const ModelOptions& options);

// The rights of clients over the models.
server::ModelRouteOptions route_options(
    const ModelOptions& options, const std::shared_ptr<server::ModelCatalog>& catalog
);

}  // namespace saker::cli
