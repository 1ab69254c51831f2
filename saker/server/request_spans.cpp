// SPDX-License-Identifier: Apache-2.0
#include "saker/server/request_spans.h"

#include "saker/server/trace_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

namespace saker::server {
namespace {

constexpr std::size_t kMostPath = 200;

std::int64_t nanoseconds(double seconds) {
  return static_cast<std::int64_t>(seconds * 1e9);
}

// A generation's kind as the conventions name it.
std::string_view operation_of(std::string_view path) {
  constexpr std::array<std::string_view, 3> kChats = {"chat", "messages", "responses"};
  const bool is_chat = std::ranges::any_of(kChats, [&](std::string_view name) {
    return path.find(name) != std::string_view::npos;
  });
  return is_chat ? "chat" : "text_completion";
}

std::int64_t start_ns(const LoggedRequest& logged) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(logged.start.time_since_epoch())
      .count();
}

spans::Span server_span(const http::Request& request, const LoggedRequest& logged) {
  constexpr int kFailure = 500;
  const std::string path = request.path.substr(0, kMostPath);
  spans::Span span{
      .trace = logged.trace,
      .id = logged.span,
      .parent = logged.parent,
      .name = fmt::format("{} {}", request.method, path),
      .kind = spans::SpanKind::kServer,
      .start_ns = start_ns(logged),
      .end_ns = start_ns(logged) + nanoseconds(logged.seconds),
      .attributes =
          {
              {"http.request.method", request.method},
              {"url.path", path},
              {"http.response.body.size", logged.bytes},
              {"saker.request.id", logged.id},
          }
  };
  if (logged.status != 0) {  // Else the client went away.
    span.attributes["http.response.status_code"] = logged.status;
  }
  if (logged.status >= kFailure) {
    span.error = fmt::format("status {}", logged.status);
    span.attributes["error.type"] = fmt::to_string(logged.status);
  }
  if (!logged.caller.name.empty()) {
    span.attributes["enduser.id"] = logged.caller.name;
  }
  return span;
}

spans::Span generation_span(
    const http::Request& request, const LoggedRequest& logged, const http::Report& report
) {
  const std::string_view operation = operation_of(request.path);
  const std::int64_t end = start_ns(logged) + nanoseconds(logged.report_seconds);
  spans::Span span{
      .trace = logged.trace,
      .id = new_span(),
      .parent = logged.span,
      .name = fmt::format("{} {}", operation, report.model),
      .start_ns = std::max(start_ns(logged), end - nanoseconds(report.seconds)),
      .end_ns = end,
      .attributes =
          {
              {"gen_ai.operation.name", operation},
              {"gen_ai.provider.name", "saker"},
              {"gen_ai.request.model", report.model},
              {"gen_ai.response.model", report.model},
              {"gen_ai.response.finish_reasons", Json::array({report.finish})},
              {"gen_ai.usage.input_tokens", report.prompt_tokens},
              {"gen_ai.usage.cache_read.input_tokens", report.cached_tokens},
              {"gen_ai.usage.output_tokens", report.generated_tokens},
          }
  };
  if (report.first_token_seconds > 0) {
    span.attributes["gen_ai.server.time_to_first_token"] = report.first_token_seconds;
  }
  if (report.finish == "failed") {
    span.error = "the generation failed";
  }
  return span;
}

}  // namespace

bool has_spans(std::string_view path) {
  constexpr std::array<std::string_view, 9> kQuiet = {
      "/",
      "/health",
      "/v1/health",
      "/ping",
      "/ready",
      "/readyz",
      "/v2/health/ready",
      "/metrics",
      "/load"
  };
  return std::ranges::find(kQuiet, path) == kQuiet.end() && !path.starts_with("/page/");
}

std::vector<spans::Span> spans_of(const http::Request& request, const LoggedRequest& logged) {
  std::vector<spans::Span> spans;
  spans.push_back(server_span(request, logged));
  if (logged.report) {
    spans.push_back(generation_span(request, logged, *logged.report));
  }
  return spans;
}

}  // namespace saker::server
