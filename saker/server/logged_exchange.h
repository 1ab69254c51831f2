// SPDX-License-Identifier: Apache-2.0
#pragma once

// An exchange with the headers that every answer has and with its caller; a line in the log and spans
// when it ends.

#include "saker/server/http/exchange.h"
#include "saker/server/request_log.h"
#include "saker/server/request_spans.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace saker::server {

class LoggedExchange : public http::Exchange {
 public:
  // REQUIRES: `log` and `tracing` outlive it. `logged` has the ids.
  LoggedExchange(
      std::shared_ptr<http::Exchange> inner,
      std::vector<http::Header> headers,
      LoggedRequest logged,
      const RequestLog& log,
      const Tracing& tracing
  )
      : inner_(std::move(inner)),
        headers_(std::move(headers)),
        logged_(std::move(logged)),
        log_(log),
        tracing_(tracing) {
    logged_.start = std::chrono::system_clock::now();
  }

  // Writes the line, and hands over the spans.
  ~LoggedExchange() override;

  // REQUIRES for these three: nothing is answered yet.
  void set_caller(http::Caller caller) { logged_.caller = std::move(caller); }

  // `call` gets the tokens of prompt and answer when they are known.
  void on_tokens(std::function<void(std::int64_t tokens)> call) { on_tokens_ = std::move(call); }

  void add_header(std::string name, std::string value) {
    headers_.emplace_back(std::move(name), std::move(value));
  }

  const http::Request& request() const override { return inner_->request(); }

  const http::Caller& caller() const override { return logged_.caller; }

  void report(http::Report report) override;
  void respond(http::Response response) override;
  void start(http::Response head) override;
  void write(std::string piece) override;

  void finish() override { inner_->finish(); }

  bool has_room() const override { return inner_->has_room(); }

  void on_room(std::function<void()> call) override { inner_->on_room(std::move(call)); }

  void set_ping(std::string piece) override { inner_->set_ping(std::move(piece)); }

  void on_gone(std::function<void()> call) override { inner_->on_gone(std::move(call)); }

  void post(std::function<void()> work) override { inner_->post(std::move(work)); }

  void work(std::function<void()> work) override { inner_->work(std::move(work)); }

  void after(int milliseconds, std::function<void()> call) override {
    inner_->after(milliseconds, std::move(call));
  }

 private:
  double seconds() const;
  void add_headers(http::Response& response) const;

  std::shared_ptr<http::Exchange> inner_;
  std::vector<http::Header> headers_;
  LoggedRequest logged_;  // `status` and `bytes` come at the end.
  const RequestLog& log_;
  const Tracing& tracing_;
  std::function<void(std::int64_t tokens)> on_tokens_;
  std::mutex report_mutex_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::atomic<int> status_ = 0;
  std::atomic<std::size_t> bytes_ = 0;
};

}  // namespace saker::server
