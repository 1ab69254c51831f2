// SPDX-License-Identifier: Apache-2.0
#pragma once

// Routes that load and unload models and adapters: those of llama-server's router and of vLLM, and
// Ollama's pull.

#include "saker/server/http/router.h"
#include "saker/server/models/model_catalog.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

namespace saker::server {

// How far a pull is.
struct PullState {
  std::string status;
  std::uintmax_t done = 0;  // Bytes.
  std::uintmax_t total = 0;
};

struct ModelRouteOptions {
  // Clients may name adapters below this folder; empty: none.
  std::filesystem::path adapter_dir = {};
  // Fetches a model and adds it to the catalog; throws what is wrong with the name or the hub.
  // Called on a thread for handlers, and calls `progress` there. Empty: clients can't.
  std::function<void(
      const std::string& name,
      const std::function<void(const PullState& state)>& progress,
      const std::stop_token& stop
  )>
      pull = {};
};

void add_model_routes(
    http::Router& router,
    const std::shared_ptr<ModelCatalog>& catalog,
    const ModelRouteOptions& options
);

}  // namespace saker::server
