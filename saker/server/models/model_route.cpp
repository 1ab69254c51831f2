// SPDX-License-Identifier: Apache-2.0
#include "saker/server/models/model_route.h"

#include "saker/server/models/keep_alive.h"
#include "saker/server/turns/fields.h"
#include "saker/server/turns/wire.h"

#include <exception>
#include <memory>
#include <stop_token>
#include <utility>

namespace saker::server {
namespace {

using ExchangePtr = std::shared_ptr<http::Exchange>;

struct Route {
  std::shared_ptr<ModelCatalog> catalog;
  ErrorShape shape;
  ModelAnswer answer;
  EarlyAnswer early;
};

// A request that waits for its model. Its state is used on the server's thread.
class Waiting : public std::enable_shared_from_this<Waiting> {
 public:
  Waiting(std::shared_ptr<const Route> route, ExchangePtr exchange, Json body)
      : route_(std::move(route)), exchange_(std::move(exchange)), body_(std::move(body)) {}

  void start(const std::string& name, std::optional<engine::KeepAlive> keep_alive) {
    const auto take = [self = shared_from_this()](
                          std::shared_ptr<const ServedModel> model, std::exception_ptr error
                      ) mutable {
      self->exchange_->post([self, model = std::move(model), error = std::move(error)]() mutable {
        self->ready(std::move(model), std::move(error));
      });
    };
    const std::uint64_t ticket = route_->catalog->ask(name, keep_alive, take);
    exchange_->on_gone([catalog = route_->catalog, ticket] { catalog->cancel(ticket); });
    const auto streams = body_.find("stream");
    if (route_->shape.in_stream != nullptr && streams != body_.end() && *streams == true) {
      exchange_->after(kStreamPatience, [weak = weak_from_this()] {
        if (const auto self = weak.lock()) {
          self->begin_stream();
        }
      });
    }
  }

 private:
  void begin_stream() {
    if (is_ready_) {
      return;
    }
    has_begun_ = true;
    exchange_->start(sse_head());
    exchange_->set_ping(": loading\n\n");
    exchange_->write(": loading\n\n");
  }

  void ready(std::shared_ptr<const ServedModel> model, std::exception_ptr error) {
    is_ready_ = true;
    if (model != nullptr) {
      std::stop_source stop;
      model = std::make_shared<const ServedModel>(model->with_stop(stop.get_token()));
      exchange_->on_gone([stop]() mutable { stop.request_stop(); });
    }
    exchange_->work(
        [self = shared_from_this(), model = std::move(model), error = std::move(error)] {
          try {
            if (error != nullptr) {
              std::rethrow_exception(error);
            }
            self->route_->answer(self->exchange_, self->body_, model);
          } catch (...) {
            self->fail(as_api_error(std::current_exception()));
          }
        }
    );
  }

  void fail(const ApiError& error) {
    if (!has_begun_) {
      return exchange_->respond(route_->shape.response(error));
    }
    exchange_->write(route_->shape.in_stream(error));
    exchange_->finish();
  }

  std::shared_ptr<const Route> route_;
  ExchangePtr exchange_;
  Json body_;
  bool is_ready_ = false;
  bool has_begun_ = false;  // The stream. Does not change once it is ready.
};

std::string name_in(const Json& body) {
  Fields fields(body);
  return fields.text("model").value_or("");
}

}  // namespace

http::Router::Route with_model(
    std::shared_ptr<ModelCatalog> catalog, ErrorShape shape, ModelAnswer answer, EarlyAnswer early
) {
  const auto route = std::make_shared<const Route>(
      Route{std::move(catalog), shape, std::move(answer), std::move(early)}
  );
  return [route](const ExchangePtr& exchange) {
    Json body = parse_body(exchange->request().body);
    const std::string name = name_in(body);
    if (route->early && route->early(exchange, body)) {
      return;
    }
    const auto keep_alive = read_keep_alive(body);
    if (const auto model = route->catalog->use_now(name, keep_alive)) {
      return route->answer(exchange, body, model);
    }
    std::make_shared<Waiting>(route, exchange, std::move(body))->start(name, keep_alive);
  };
}

}  // namespace saker::server
