// SPDX-License-Identifier: Apache-2.0
#include "saker/server/logged_exchange.h"

#include "saker/base/utf8.h"

#include <fmt/format.h>

#include <exception>

namespace saker::server {

LoggedExchange::~LoggedExchange() {
  if (!log_) {
    return;
  }
  try {
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start_;
    log_(fmt::format(
        "{} {} {} {} {} bytes {:.3f} s{}{}",
        id_,
        request().method,
        quote(request().path),
        status_.load(),
        bytes_.load(),
        time.count(),
        key_.empty() ? "" : " key ",
        key_
    ));
  } catch (const std::exception&) {
    // Without memory there is no line.
  }
}

void LoggedExchange::add_headers(http::Response& response) const {
  response.headers.insert(response.headers.end(), headers_.begin(), headers_.end());
}

void LoggedExchange::respond(http::Response response) {
  status_ = response.status;
  bytes_ += response.body.size();
  add_headers(response);
  inner_->respond(std::move(response));
}

void LoggedExchange::start(http::Response head) {
  status_ = head.status;
  add_headers(head);
  inner_->start(std::move(head));
}

void LoggedExchange::write(std::string piece) {
  bytes_ += piece.size();
  inner_->write(std::move(piece));
}

}  // namespace saker::server
