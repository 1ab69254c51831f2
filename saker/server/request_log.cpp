// SPDX-License-Identifier: Apache-2.0
#include "saker/server/request_log.h"

#include "saker/base/json/json_numbers.h"
#include "saker/base/utf8.h"
#include "saker/server/turns/wire.h"

#include <fmt/format.h>

#include <chrono>

namespace saker::server {
namespace {

constexpr std::size_t kMostBody = std::size_t{64} << 10;

std::string text_line(
    const http::Request& request, const LoggedRequest& logged, const RequestLog& log
) {
  std::string line = fmt::format(
      "{} {} {} {} {} bytes {:.3f} s",
      logged.id,
      request.method,
      quote(request.path),
      logged.status,
      logged.bytes,
      logged.seconds
  );
  if (!logged.caller.name.empty()) {
    line += " key " + logged.caller.name;
  }
  if (const auto& report = logged.report) {
    line += fmt::format(
        " model {} prompt {} cached {} generated {} first {:.3f} s {}",
        quote(report->model),
        report->prompt_tokens,
        report->cached_tokens,
        report->generated_tokens,
        report->first_token_seconds,
        report->finish
    );
  }
  if (!logged.trace.empty()) {
    line += fmt::format(" trace {} span {}", logged.trace, logged.span);
  }
  if (log.has_bodies && !request.body.empty()) {
    line += " body " + quote(request.body.substr(0, kMostBody));
  }
  return line;
}

std::string json_line_of(
    const http::Request& request, const LoggedRequest& logged, const RequestLog& log
) {
  Json line = {
      {"time", utc_time(std::chrono::system_clock::now())},
      {"id", logged.id},
      {"method", request.method},
      {"path", request.path},
      {"status", logged.status},
      {"bytes", logged.bytes},
      {"seconds", logged.seconds},
  };
  if (!logged.caller.name.empty()) {
    line["key"] = logged.caller.name;
  }
  if (const auto& report = logged.report) {
    line["model"] = report->model;
    line["prompt_tokens"] = report->prompt_tokens;
    line["cached_tokens"] = report->cached_tokens;
    line["generated_tokens"] = report->generated_tokens;
    line["first_token_seconds"] = report->first_token_seconds;
    line["finish"] = report->finish;
  }
  if (!logged.trace.empty()) {
    line["trace_id"] = logged.trace;
    line["span_id"] = logged.span;
  }
  if (log.has_bodies && !request.body.empty()) {
    line["body"] = request.body.substr(0, kMostBody);
  }
  return write_json(line);
}

}  // namespace

std::string log_line(
    const http::Request& request, const LoggedRequest& logged, const RequestLog& log
) {
  return log.form == LogForm::kJson ? json_line_of(request, logged, log)
                                    : text_line(request, logged, log);
}

}  // namespace saker::server
