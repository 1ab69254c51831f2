// SPDX-License-Identifier: Apache-2.0
#pragma once

// A request that has ended as spans: one of the server, and below it one of the generation.

#include "saker/server/http/message.h"
#include "saker/server/request_log.h"
#include "saker/server/spans/sampler.h"
#include "saker/server/spans/span_queue.h"

#include <memory>
#include <string_view>
#include <vector>

namespace saker::server {

struct Tracing {
  std::shared_ptr<spans::SpanQueue> queue = {};  // Null: no spans.
  spans::Sampler sampler = {};
};

// False for probes, scrapes and the page.
bool has_spans(std::string_view path);

// With the names of OpenTelemetry's conventions for HTTP and for generative models.
std::vector<spans::Span> spans_of(const http::Request& request, const LoggedRequest& logged);

}  // namespace saker::server
