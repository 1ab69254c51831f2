// SPDX-License-Identifier: Apache-2.0
#pragma once

// Models as a server: routes of all dialects, who may use them, health, draining, metrics, the log
// of requests.

#include "saker/server/admin/model_routes.h"
#include "saker/server/http/access.h"
#include "saker/server/http/http_server.h"
#include "saker/server/models/model_catalog.h"
#include "saker/server/request_log.h"
#include "saker/server/request_spans.h"

#include <memory>
#include <string>

namespace saker::server {

struct ServiceOptions {
  http::ServerOptions http = {};
  http::AccessOptions access = {};
  // After SIGTERM /health says 503, so that load balancers look elsewhere. All is served for this
  // long; then no connection is taken.
  int drain_delay_seconds = 0;
  int drain_seconds = 30;   // After that delay running answers have this long.
  int stall_seconds = 120;  // A pass of the model that takes longer makes /health say 503; 0: none.
  RequestLog log = {};
  Tracing tracing = {};
  ModelRouteOptions models = {};
};

class Service {
 public:
  // Listens from now on. Throws kInvalidArgument for an address that can't be had, and for one that
  // other machines reach if there are no keys.
  Service(std::shared_ptr<ModelCatalog> catalog, ServiceOptions options);
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  // Closes the catalog.
  ~Service();

  // "http://127.0.0.1:8080".
  std::string address() const;

  // Serves until SIGTERM or SIGINT and the end of running answers, or a second signal.
  void run();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace saker::server
