// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads requests of POST /v1/responses: items become messages as chat templates take them.

#include "saker/base/json/json.h"
#include "saker/engine/request.h"
#include "saker/server/api/responses/store.h"
#include "saker/server/turns/served_model.h"

#include <set>
#include <string>

namespace saker::server::responses {

struct ResponsesRequest {
  engine::Request request;
  std::string model;  // As it was asked for.
  bool streams = false;
  bool stores = true;
  std::set<std::string> custom_tools;  // Names of tools whose input is free text.
  bool has_logprobs = false;           // Of the content's tokens.
  Json echoed;                         // Members of the request that the response repeats.
  Json conversation;  // Messages without the instructions, which are not carried over.
  Json input;         // The request's input items.
};

// Throws a 400, or a 404 for an unknown model or previous response.
ResponsesRequest read_responses(const Json& body, const ServedModel& model, ResponseStore& store);

}  // namespace saker::server::responses
