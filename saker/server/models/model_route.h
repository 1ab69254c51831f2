// SPDX-License-Identifier: Apache-2.0
#pragma once

// Routes that need a model. A request waits for its model without a thread; a stream that waits long
// begins with comments, and has errors inside from then on. A client that goes away waits no more.

#include "saker/base/json/json.h"
#include "saker/server/http/router.h"
#include "saker/server/models/model_catalog.h"
#include "saker/server/turns/error_shape.h"

#include <functional>
#include <memory>
#include <string>

namespace saker::server {

using ModelPtr = std::shared_ptr<const ServedModel>;

// Answers a request, whose body is `body`, with its model. Called on a thread for handlers.
using ModelAnswer = std::function<
    void(const std::shared_ptr<http::Exchange>& exchange, const Json& body, const ModelPtr& model)>;

// As above, before a model is there; true if that was the answer.
using EarlyAnswer =
    std::function<bool(const std::shared_ptr<http::Exchange>& exchange, const Json& body)>;

// Milliseconds after which a stream that waits for its model begins.
inline constexpr int kStreamPatience = 2000;

// The body's member `model` says which model. Throws a 400 for a body that is none, a 404 for an
// unknown model; later errors are answered in the dialect's shape.
http::Router::Route with_model(
    std::shared_ptr<ModelCatalog> catalog,
    ErrorShape shape,
    ModelAnswer answer,
    EarlyAnswer early = {}
);

}  // namespace saker::server
