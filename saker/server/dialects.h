// SPDX-License-Identifier: Apache-2.0
#pragma once

// The APIs that a server speaks, and which one a request is in.

#include "saker/server/http/router.h"
#include "saker/server/models/model_catalog.h"
#include "saker/server/turns/api_error.h"

#include <memory>

namespace saker::server {

struct Dialect {
  const char* id_header;  // The header with a request's id.
  http::Response (*error_response)(const ApiError& error);
};

// By path, and by the header that Anthropic's clients send.
const Dialect& dialect_of(const http::Request& request);

void add_dialects(http::Router& router, const std::shared_ptr<ModelCatalog>& catalog);

}  // namespace saker::server
