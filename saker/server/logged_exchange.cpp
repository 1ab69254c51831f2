// SPDX-License-Identifier: Apache-2.0
#include "saker/server/logged_exchange.h"

#include <exception>

namespace saker::server {

LoggedExchange::~LoggedExchange() {
  try {
    logged_.status = status_;
    logged_.bytes = bytes_;
    logged_.seconds = seconds();
    if (logged_.is_sampled && tracing_.queue != nullptr) {
      tracing_.queue->add(spans_of(request(), logged_));
    }
    if (log_.write) {
      log_.write(log_line(request(), logged_, log_));
    }
  } catch (const std::exception&) {
    // Without memory there is no line.
  }
}

double LoggedExchange::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void LoggedExchange::report(http::Report report) {
  if (on_tokens_) {
    on_tokens_(report.prompt_tokens + report.generated_tokens);
  }
  const std::lock_guard lock(report_mutex_);
  logged_.report = std::move(report);
  logged_.report_seconds = seconds();
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
