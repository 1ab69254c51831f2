// SPDX-License-Identifier: Apache-2.0
// A server with scripted models, for tests of clients: fake_server SCRIPT.json [PORT] [KEY]
// [OPTIONS]. OPTIONS is an object of JSON: see `read_options`; its "adapter" names one. Writes its
// address as the first line of standard output. fake_server --certificate CERT.pem KEY.pem makes a
// certificate for it.
//
// The script is that of one model named "fake" (tests/support/fake_engine.h), or
//   {"memory": N,                          units for all models together
//    "adapter_dir": DIR, "pulls": true,    what clients may do
//    "models": [{"name": NAME, "aliases": [NAME...], "adapters": {NAME: DIR}, "script": [...],
//                "memory": N,              units that it needs
//                "load_ms": N,             its load takes this long
//                "load_fails": N,          its first N loads fail
//                "keep_alive_ms": N, "pinned": true}]}
#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/engine/logging.h"
#include "saker/engine/pool/model_details.h"
#include "saker/server/service.h"

#include "tests/support/certificates.h"
#include "tests/support/fake_engine.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace {

using saker::Json;

namespace server = saker::server;

std::atomic<int> all_cancelled = 0;

void read_options(const saker::Json& given, server::ServiceOptions& options) {
  options.http.host = given.value("host", options.http.host);
  options.http.certificate = given.value("tls_cert", "");
  options.http.certificate_key = given.value("tls_key", "");
  options.drain_delay_seconds = given.value("drain_delay", options.drain_delay_seconds);
  options.drain_seconds = given.value("drain", options.drain_seconds);
  options.stall_seconds = given.value("stall", options.stall_seconds);
  options.log.has_bodies = given.value("log_bodies", false);
  if (given.contains("log")) {
    options.log.form = given["log"] == "json" ? server::LogForm::kJson : server::LogForm::kText;
    options.log.write = [](std::string_view line) { std::cerr << line << std::endl; };
  }
  for (const saker::Json& key : given.value("keys", saker::Json::array())) {
    options.access.keys.push_back(
        {.name = key.at("name"),
         .key = key.at("key"),
         .priority = key.value("priority", 0),
         .requests_per_minute = key.value("requests", 0),
         .tokens_per_minute = key.value("tokens", 0)}
    );
  }
}

class CountedEngine : public saker::FakeEngine {
 public:
  using FakeEngine::FakeEngine;

  ~CountedEngine() override { all_cancelled += cancelled(); }
};

saker::engine::PoolModel pool_model(const Json& given) {
  saker::engine::PoolModel model;
  model.bytes = given.value("memory", 1U);
  model.is_pinned = given.value("pinned", false);
  model.keep_alive = std::chrono::milliseconds(given.value("keep_alive_ms", 300'000));
  const auto fails = std::make_shared<std::atomic<int>>(given.value("load_fails", 0));
  model.load = [given, fails](const std::stop_token& stop
               ) -> std::unique_ptr<saker::engine::LanguageModel> {
    for (int left = given.value("load_ms", 0); left > 0 && !stop.stop_requested(); left -= 5) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    saker::require(
        fails->fetch_sub(1) <= 0, saker::ErrorCode::kCorruptData, "its weights are broken"
    );
    return std::make_unique<CountedEngine>(given.value("script", Json::array()));
  };
  return model;
}

void add(saker::server::ModelCatalog& catalog, const Json& given) {
  saker::engine::ModelDetails details =
      saker::engine::read_model_details(std::string(SAKER_SOURCE_DIR) + "/models/demo");
  details.model_type = "fake";
  details.context_length = 2048;
  saker::server::ModelNames names{.names = {given.at("name").get<std::string>()}};
  for (const Json& alias : given.value("aliases", Json::array())) {
    names.names.push_back(alias.get<std::string>());
  }
  const Json adapters = given.value("adapters", Json::object());
  for (const auto& [name, folder] : adapters.items()) {
    names.adapters.push_back({name, folder.get<std::string>()});
  }
  catalog.add(std::move(names), std::move(details), pool_model(given));
}

// One file of two parts; "gone" is not in the hub. What was fetched can be served.
void pull(
    const std::shared_ptr<saker::server::ModelCatalog>& catalog,
    const std::string& name,
    const std::function<void(const saker::server::PullState& state)>& progress
) {
  saker::require(name != "gone", saker::ErrorCode::kNotFound, "the hub has no model {}", name);
  progress({.status = "pulling manifest"});
  progress({.status = "pulling", .done = 1, .total = 2});
  progress({.status = "pulling", .done = 2, .total = 2});
  saker::require(name != "torn", saker::ErrorCode::kCorruptData, "the file is torn");
  add(*catalog, {{"name", name}});
}

std::shared_ptr<saker::server::ModelCatalog> make_catalog(
    const Json& script, const Json& given, saker::server::ModelRouteOptions& options
) {
  const bool is_one = !script.is_object() || !script.contains("models");
  auto catalog = std::make_shared<saker::server::ModelCatalog>(
      saker::server::CatalogOptions{.memory_bytes = is_one ? 1U : script.value("memory", 1000U)}
  );
  if (is_one) {
    Json model = {{"name", "fake"}, {"script", script}, {"pinned", true}};
    if (given.contains("adapter")) {
      model["adapters"] = {{given["adapter"], "adapter"}};
    }
    add(*catalog, model);
    catalog->load("fake");
    return catalog;
  }
  for (const Json& model : script.at("models")) {
    add(*catalog, model);
  }
  options.adapter_dir = script.value("adapter_dir", "");
  if (script.value("pulls", false)) {
    options.pull = [weak = std::weak_ptr(catalog
                    )](const std::string& name, const auto& progress, const std::stop_token&) {
      pull(weak.lock(), name, progress);
    };
  }
  return catalog;
}

void serve(const Json& script, int port, std::string_view key, const Json& given) {
  saker::server::ServiceOptions options;
  options.http.port = port;
  if (!key.empty()) {
    options.access.keys.push_back({"test", std::string(key)});
  }
  read_options(given, options);
  options.http.limits.write_time = std::chrono::milliseconds(1500);
  options.http.limits.head_time = std::chrono::milliseconds(1000);
  options.http.limits.ping_time = std::chrono::milliseconds(300);
  const auto catalog = make_catalog(script, given, options.models);
  saker::server::Service service(catalog, options);
  std::cout << service.address() << std::endl;
  service.run();
}

}  // namespace

int main(int argc, char** argv) {
  saker::log_to_stderr();
  try {
    if (argc > 3 && std::string_view(argv[1]) == "--certificate") {
      saker::write_certificate(argv[2], argv[3]);
      return 0;
    }
    serve(
        saker::read_json_file(argv[1]),
        argc > 2 ? std::atoi(argv[2]) : 0,
        argc > 3 ? argv[3] : "",
        saker::parse_json(argc > 4 ? argv[4] : "{}", "OPTIONS")
    );
    std::cout << "cancelled " << all_cancelled << std::endl;
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
