// SPDX-License-Identifier: Apache-2.0
#include "saker/server/admin/pull_route.h"

#include "saker/server/turns/fields.h"
#include "saker/server/turns/wire.h"

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace saker::server {
namespace {

using ExchangePtr = std::shared_ptr<http::Exchange>;

// Says that a pull runs, for as long as it lives.
class Turnstile {
 public:
  explicit Turnstile(std::atomic<bool>& is_taken) : is_taken_(is_taken) {
    if (is_taken_.exchange(true)) {
      throw ApiError(429, "another pull is running").with_retry_after(kRetryAfter);
    }
  }

  Turnstile(const Turnstile&) = delete;
  Turnstile& operator=(const Turnstile&) = delete;

  ~Turnstile() { is_taken_ = false; }

 private:
  static constexpr int kRetryAfter = 30;  // Seconds.

  std::atomic<bool>& is_taken_;
};

Json state_json(const PullState& state) {
  Json json = {{"status", state.status}};
  if (state.total > 0) {
    json["total"] = state.total;
    json["completed"] = state.done;
  }
  return json;
}

// Leaves the turnstile before the last line, so that the client can pull again at once.
void stream_pull(
    const ExchangePtr& exchange,
    const Pull& pull,
    const std::string& name,
    std::optional<Turnstile>& turnstile
) {
  std::stop_source stop;
  exchange->on_gone([stop]() mutable { stop.request_stop(); });
  bool has_begun = false;
  const auto say = [&](const Json& line) {
    if (!std::exchange(has_begun, true)) {
      exchange->start({.content_type = "application/x-ndjson"});
    }
    exchange->write(json_line(line));
  };
  try {
    pull(name, [&](const PullState& state) { say(state_json(state)); }, stop.get_token());
    turnstile.reset();
    say({{"status", "success"}});
  } catch (...) {
    turnstile.reset();
    if (!has_begun) {
      throw;
    }
    say({{"error", as_api_error(std::current_exception()).what()}});
  }
  exchange->finish();
}

void answer(const ExchangePtr& exchange, const Pull& pull, std::atomic<bool>& is_taken) {
  if (!pull) {
    throw ApiError(403, "clients can't pull models; the server needs --allow-pull");
  }
  const Json body = parse_body(exchange->request().body);
  Fields fields(body);
  const auto old_name = fields.text("name");
  const std::string name = fields.text("model").value_or(old_name.value_or(""));
  if (name.empty()) {
    fields.fail("model", "expected the name of a model");
  }
  const bool streams = fields.flag("stream").value_or(true);
  fields.refuse({"insecure"});
  fields.log_unknown("ollama");
  std::optional<Turnstile> turnstile(std::in_place, is_taken);
  if (streams) {
    return stream_pull(exchange, pull, name, turnstile);
  }
  std::stop_source stop;
  exchange->on_gone([stop]() mutable { stop.request_stop(); });
  pull(name, [](const PullState&) {}, stop.get_token());
  turnstile.reset();
  exchange->respond(json_response({{"status", "success"}}));
}

}  // namespace

void add_pull(http::Router& router, const Pull& pull) {
  const auto is_taken = std::make_shared<std::atomic<bool>>(false);
  router.add("POST", "/api/pull", [pull, is_taken](const ExchangePtr& exchange) {
    answer(exchange, pull, *is_taken);
  });
}

}  // namespace saker::server
