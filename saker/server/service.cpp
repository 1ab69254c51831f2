// SPDX-License-Identifier: Apache-2.0
#include "saker/server/service.h"

#include "saker/base/error.h"
#include "saker/server/admin/metrics.h"
#include "saker/server/admin/model_routes.h"
#include "saker/server/admin/openapi.h"
#include "saker/server/api/extras/routes.h"
#include "saker/server/api/openai/errors.h"
#include "saker/server/api/openai/routes.h"
#include "saker/server/dialects.h"
#include "saker/server/http/router.h"
#include "saker/server/key_limits.h"
#include "saker/server/logged_exchange.h"
#include "saker/server/page/page.h"
#include "saker/server/trace_context.h"
#include "saker/server/turns/wire.h"
#include "saker/server/watchdog.h"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <exception>
#include <optional>
#include <utility>

namespace saker::server {
namespace {

using ExchangePtr = std::shared_ptr<http::Exchange>;

// Probes and the preflights of browsers have no key.
bool is_public(std::string_view path) {
  return page::is_page(path) || path == "/health" || path == "/v1/health" || path == "/ready" ||
         path == "/readyz" || path == "/ping";
}

// Pages of other origins can send these without asking first, unless the type is JSON's.
bool is_disguised(const http::Request& request) {
  return request.method == "POST" && !request.header("Origin").empty() &&
         !request.header("Content-Type").starts_with("application/json");
}

}  // namespace

class Service::Impl {
 public:
  Impl(std::shared_ptr<ModelCatalog> catalog, ServiceOptions options)
      : catalog_(std::move(catalog)),
        has_keys_(!options.access.keys.empty()),
        limits_(options.access.keys),
        access_(std::move(options.access)),
        drain_delay_seconds_(options.drain_delay_seconds),
        drain_seconds_(options.drain_seconds),
        watchdog_([this] { return catalog_->busy_seconds(); }, options.stall_seconds),
        log_(std::move(options.log)),
        tracing_(std::move(options.tracing)),
        http_(
            options.http,
            [this](ExchangePtr exchange) { answer(std::move(exchange)); },
            [](const http::BadRequest& bad) {
              return openai::error_response(ApiError(bad.status, bad.reason));
            }
        ) {
    require(
        http_.is_loopback() || has_keys_,
        ErrorCode::kInvalidArgument,
        "{} can be reached from other machines, so that --api-key is needed",
        http_.address()
    );
    add_dialects(router_, catalog_);
    add_model_routes(router_, catalog_, options.models);
    page::add_routes(router_);
    add_health();
    router_.add("GET", "/openapi.json", [this](const ExchangePtr& exchange) {
      exchange->respond(json_response(openapi(router_)));
    });
  }

  // Nobody waits for a model when the connections end.
  ~Impl() { catalog_->close(); }

  std::string address() const { return http_.address(); }

  void run() {
    http_.on_signal([this] { on_signal(); });
    http_.run();
  }

 private:
  void add_health() {
    for (const std::string path :
         {"/health", "/v1/health", "/ping", "/ready", "/readyz", "/v2/health/ready"}) {
      router_.add("GET", path, [this](const ExchangePtr& exchange) {
        require_open();
        require_alive();
        exchange->respond(json_response({{"status", "ok"}}));
      });
    }
    router_.add("GET", "/metrics", [this](const ExchangePtr& exchange) {
      exchange->respond(
          {.content_type = "text/plain; version=0.0.4; charset=utf-8",
           .body = metrics_text(*catalog_, http_requests_, tracing_.queue.get())}
      );
    });
  }

  void require_open() const {
    if (is_draining_) {
      throw ApiError(503, "the server is about to end").with_retry_after(drain_seconds_);
    }
  }

  void require_alive() const {
    if (const double seconds = watchdog_.hangs_for(); seconds > 0) {
      throw ApiError(503, fmt::format("the model hangs for {:.0f} s", seconds));
    }
  }

  void answer(ExchangePtr plain) {
    ++http_requests_;
    const http::Request& request = plain->request();
    const Dialect& dialect = dialect_of(request);
    LoggedRequest logged{.id = request_id(request)};
    std::vector<http::Header> headers = headers_for(request, dialect, logged.id);
    trace(request, logged, headers);
    const auto exchange = std::make_shared<LoggedExchange>(
        std::move(plain), std::move(headers), std::move(logged), log_, tracing_
    );
    try {
      route(exchange);
    } catch (...) {
      const ApiError error = as_api_error(std::current_exception());
      exchange->respond(dialect.error_response(error));
    }
  }

  // The request's trace, if the client names one or spans are sent.
  void trace(
      const http::Request& request, LoggedRequest& logged, std::vector<http::Header>& headers
  ) const {
    auto context = read_trace_context(request.header("traceparent"));
    const bool may_be_sampled = tracing_.queue != nullptr && has_spans(request.path);
    if (!context && !may_be_sampled) {
      return;
    }
    const auto parent = context ? std::optional(is_sampled(*context)) : std::nullopt;
    if (context) {
      logged.parent = context->parent;
    } else {
      context = TraceContext{.trace = new_trace(), .parent = {}, .flags = "00"};
    }
    logged.trace = context->trace;
    logged.span = new_span();
    if (may_be_sampled) {
      logged.is_sampled = tracing_.sampler.samples(parent, logged.trace);
      context->flags = logged.is_sampled ? "01" : "00";
    }
    headers.emplace_back("traceparent", context->header(logged.span));
  }

  void route(const std::shared_ptr<LoggedExchange>& exchange) {
    const http::Request& request = exchange->request();
    if (const auto denial = access_.check_source(request)) {
      throw ApiError(denial->status, denial->reason);
    }
    if (request.method == "OPTIONS") {
      return exchange->respond(access_.preflight(request));
    }
    const http::Router::Found found = router_.find(request.method, request.path);
    if (!is_public(request.path)) {
      std::optional<http::Caller> caller = access_.caller(request);
      if (!caller) {
        throw ApiError(401, "the API key is missing or wrong").with_code("invalid_api_key");
      }
      exchange->set_caller(*std::move(caller));
    }
    if (found.route == nullptr && found.allowed.empty()) {
      throw ApiError(404, fmt::format("no such path: {}", request.path.substr(0, 200)));
    }
    if (found.route == nullptr) {
      exchange->add_header("Allow", found.allowed + ", OPTIONS");
      throw ApiError(405, fmt::format("expected {}", found.allowed));
    }
    if (is_disguised(request)) {
      throw ApiError(400, "pages of other origins send Content-Type: application/json");
    }
    if (request.method == "POST") {
      limit(*exchange);
    }
    (*found.route)(exchange);
  }

  // Throws a 429 if the caller's key has used up its minute.
  void limit(LoggedExchange& exchange) {
    const std::string& name = exchange.caller().name;
    KeyLimits::Room room = limits_.enter(name);
    for (auto& [key, value] : room.headers) {
      exchange.add_header(std::move(key), std::move(value));
    }
    if (room.wait_s > 0) {
      throw ApiError(
          429, fmt::format("the key {} has used up its {} of a minute", name, room.used_up)
      )
          .with_code("rate_limit_exceeded")
          .with_retry_after(static_cast<int>(std::ceil(room.wait_s)));
    }
    exchange.on_tokens([this, name](std::int64_t tokens) { limits_.spend(name, tokens); });
  }

  std::vector<http::Header> headers_for(
      const http::Request& request, const Dialect& dialect, const std::string& id
  ) const {
    std::vector<http::Header> headers;
    if (!access_.check_source(request)) {
      headers = access_.cors(request);
    }
    headers.emplace_back(dialect.id_header, id);
    return headers;
  }

  // The client's own id if it can be a header, else a new one.
  static std::string request_id(const http::Request& request) {
    constexpr std::size_t kMost = 128;
    const std::string_view given = request.header("X-Request-Id");
    const bool is_usable = !given.empty() && given.size() <= kMost && http::is_header_value(given);
    return is_usable ? std::string(given) : new_id("req_");
  }

  // On the server's thread, as all of draining.
  void on_signal() {
    if (is_draining_.exchange(true)) {
      return http_.stop();
    }
    http_.after(drain_delay_seconds_ * 1000, [this] {
      http_.close_after_answers();
      checks_left_ = drain_seconds_ * kChecksPerSecond;
      check_drained();
    });
  }

  void check_drained() {
    if (http_.answering() == 0 || checks_left_-- <= 0) {
      return http_.stop();
    }
    http_.after(1000 / kChecksPerSecond, [this] { check_drained(); });
  }

  static constexpr int kChecksPerSecond = 20;

  std::shared_ptr<ModelCatalog> catalog_;
  std::atomic<std::uint64_t> http_requests_ = 0;
  bool has_keys_;
  KeyLimits limits_;
  http::Access access_;
  int drain_delay_seconds_;
  int drain_seconds_;
  Watchdog watchdog_;
  RequestLog log_;
  Tracing tracing_;
  http::Router router_;
  std::atomic<bool> is_draining_ = false;
  int checks_left_ = 0;    // Until running answers are cut off.
  http::HttpServer http_;  // The last member: its threads use the others.
};

Service::Service(std::shared_ptr<ModelCatalog> catalog, ServiceOptions options)
    : impl_(std::make_unique<Impl>(std::move(catalog), std::move(options))) {}

Service::~Service() = default;

std::string Service::address() const {
  return impl_->address();
}

void Service::run() {
  impl_->run();
}

}  // namespace saker::server
