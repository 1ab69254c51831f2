// SPDX-License-Identifier: Apache-2.0
#include "saker/server/admin/model_routes.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/server/admin/adapter_folder.h"
#include "saker/server/admin/pull_route.h"
#include "saker/server/admin/sleepers.h"
#include "saker/server/api/openai/errors.h"
#include "saker/server/http/query.h"
#include "saker/server/models/model_route.h"
#include "saker/server/turns/fields.h"
#include "saker/server/turns/wire.h"

#include <string>
#include <utility>

namespace saker::server {
namespace {

using ExchangePtr = std::shared_ptr<http::Exchange>;
using CatalogPtr = std::shared_ptr<ModelCatalog>;

http::Response plain(std::string text) {
  return {.content_type = "text/plain", .body = std::move(text)};
}

void add_loads(http::Router& router, const CatalogPtr& catalog) {
  const auto loaded = [](const ExchangePtr& exchange, const Json& /*body*/, const ModelPtr&) {
    exchange->respond(json_response({{"success", true}}));
  };
  router.add("POST", "/models/load", with_model(catalog, openai::kErrorShape, loaded));
  router.add("POST", "/models/unload", [catalog](const ExchangePtr& exchange) {
    const Json body = parse_body(exchange->request().body);
    Fields fields(body);
    fields.required("model");
    catalog->unload(*fields.text("model"));
    exchange->respond(json_response({{"success", true}}));
  });
  router.add("GET", "/load", [catalog](const ExchangePtr& exchange) {
    std::int64_t all = 0;
    Json models = Json::object();
    for (const ModelCard& card : catalog->cards()) {
      const std::int64_t running = card.counters->running.load();
      all += running;
      models[card.name()] = running;
    }
    exchange->respond(json_response({{"server_load", all}, {"models", std::move(models)}}));
  });
}

void add_sleep(http::Router& router, const CatalogPtr& catalog) {
  const auto sleepers = std::make_shared<Sleepers>(catalog);
  const auto model_of = [](const ExchangePtr& exchange) {
    return http::query_value(exchange->request().query, "model");
  };
  router.add("POST", "/sleep", [sleepers, model_of](const ExchangePtr& exchange) {
    sleepers->sleep(model_of(exchange));
    exchange->respond(plain(""));
  });
  router.add("POST", "/wake_up", [sleepers, model_of](const ExchangePtr& exchange) {
    sleepers->wake(model_of(exchange), [exchange](const std::exception_ptr& error) {
      exchange->respond(error == nullptr ? plain("") : openai::error_response(as_api_error(error)));
    });
  });
  router.add("GET", "/is_sleeping", [sleepers, model_of](const ExchangePtr& exchange) {
    exchange->respond(json_response({{"is_sleeping", sleepers->are_asleep(model_of(exchange))}}));
  });
}

void load_adapter(
    const ExchangePtr& exchange, ModelCatalog& catalog, const std::filesystem::path& folder
) {
  const Json body = parse_body(exchange->request().body);
  Fields fields(body);
  fields.required("lora_name");
  fields.required("lora_path");
  const std::string name = *fields.text("lora_name");
  const auto base = fields.text("base_model_name");
  fields.refuse({"load_inplace"});
  check_adapter_name(name);
  const auto path = adapter_below(folder, *fields.text("lora_path"));
  catalog.add_adapter(fields.text("model").value_or(base.value_or("")), {name, path});
  exchange->respond(plain(fmt::format("Success: LoRA adapter '{}' added successfully.", name)));
}

void add_adapters(
    http::Router& router, const CatalogPtr& catalog, const std::filesystem::path& folder
) {
  router.add("POST", "/v1/load_lora_adapter", [catalog, folder](const ExchangePtr& exchange) {
    if (folder.empty()) {
      throw ApiError(403, "clients can't load adapters; the server needs --adapter-dir");
    }
    load_adapter(exchange, *catalog, folder);
  });
  router.add("POST", "/v1/unload_lora_adapter", [catalog, folder](const ExchangePtr& exchange) {
    if (folder.empty()) {
      throw ApiError(403, "clients can't unload adapters; the server needs --adapter-dir");
    }
    const Json body = parse_body(exchange->request().body);
    Fields fields(body);
    fields.required("lora_name");
    const std::string name = *fields.text("lora_name");
    catalog->remove_adapter(name);
    exchange->respond(
        plain(fmt::format("Success: LoRA adapter {} removed successfully.", quote(name)))
    );
  });
}

}  // namespace

void add_model_routes(
    http::Router& router, const CatalogPtr& catalog, const ModelRouteOptions& options
) {
  add_loads(router, catalog);
  add_sleep(router, catalog);
  add_adapters(router, catalog, options.adapter_dir);
  add_pull(router, options.pull);
}

}  // namespace saker::server
