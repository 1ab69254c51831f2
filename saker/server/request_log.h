// SPDX-License-Identifier: Apache-2.0
#pragma once

// A line per request, as text or JSON. Any thread may write.

#include "saker/server/http/caller.h"
#include "saker/server/http/message.h"

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace saker::server {

enum class LogForm { kText, kJson };

struct RequestLog {
  std::function<void(std::string_view line)> write = {};  // Empty: no log.
  LogForm form = LogForm::kText;
  bool has_bodies = false;  // Lines have the requests' bodies, up to 64 KiB each.
};

// A request that has ended.
struct LoggedRequest {
  std::string id;
  std::string trace = {};  // Empty: the client names none, and no spans are sent.
  std::string span = {};
  std::string parent = {};  // The client's span; empty: there is none.
  bool is_sampled = false;  // It gets spans.
  int status = 0;           // 0: it was not answered.
  std::size_t bytes = 0;
  std::chrono::system_clock::time_point start = {};
  double seconds = 0.0;
  http::Caller caller = {};
  std::optional<http::Report> report = {};  // Of a generation.
  double report_seconds = 0.0;              // When it came, since the start.
};

std::string log_line(
    const http::Request& request, const LoggedRequest& logged, const RequestLog& log
);

}  // namespace saker::server
