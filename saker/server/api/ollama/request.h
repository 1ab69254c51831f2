// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads requests of POST /api/chat and POST /api/generate.

#include "saker/base/json/json.h"
#include "saker/engine/request.h"
#include "saker/server/turns/served_model.h"

#include <string>

namespace saker::server::ollama {

enum class Form { kChat, kGenerate };

struct OllamaRequest {
  engine::Request request;
  std::string model;  // As it was asked for.
  Form form = Form::kChat;
  bool streams = true;
  // There is no prompt: the request only loads the model.
  bool only_loads = false;
  bool has_logprobs = false;  // For the content's tokens.
};

// Throws a 400, or a 404 for an unknown model.
OllamaRequest read_request(const Json& body, Form form, const ServedModel& model);

// True for a request without a prompt, which loads the model or unloads it.
bool only_loads(const Json& body, Form form);

}  // namespace saker::server::ollama
