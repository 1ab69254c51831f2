// SPDX-License-Identifier: Apache-2.0
#pragma once

// An exchange with the headers that every answer has, and a line in the log when it ends.

#include "saker/server/http/exchange.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::server {

class LoggedExchange : public http::Exchange {
 public:
  using Log = std::function<void(std::string_view line)>;

  // `log` may be empty.
  LoggedExchange(
      std::shared_ptr<http::Exchange> inner,
      std::vector<http::Header> headers,
      std::string id,
      const Log& log
  )
      : inner_(std::move(inner)), headers_(std::move(headers)), id_(std::move(id)), log_(log) {}

  // Writes the line.
  ~LoggedExchange() override;

  // REQUIRES: nothing is answered yet.
  void set_key(std::string name) { key_ = std::move(name); }

  void add_header(std::string name, std::string value) {
    headers_.emplace_back(std::move(name), std::move(value));
  }

  const http::Request& request() const override { return inner_->request(); }

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
  void add_headers(http::Response& response) const;

  std::shared_ptr<http::Exchange> inner_;
  std::vector<http::Header> headers_;
  std::string id_;
  std::string key_;
  Log log_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::atomic<int> status_ = 0;  // 0: not answered.
  std::atomic<std::size_t> bytes_ = 0;
};

}  // namespace saker::server
