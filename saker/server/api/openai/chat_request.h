// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads requests of POST /v1/chat/completions.

#include "saker/base/json/json.h"
#include "saker/engine/request.h"
#include "saker/server/turns/fields.h"
#include "saker/server/turns/served_model.h"

#include <optional>
#include <set>
#include <string>

namespace saker::server::openai {

// How a request wants its answer.
struct Answering {
  std::string model;  // As it was asked for.
  bool streams = false;
  bool includes_usage = false;      // A stream ends with a chunk of counts.
  bool continuous_usage = false;    // Each chunk has counts.
  std::optional<int> top_logprobs;  // Alternatives per token; none: no log-probabilities.
  bool returns_token_ids = false;
  std::optional<int> prompt_top = {};  // Alternatives per token of the prompt (prompt_logprobs.h).
  Json prompt_logprobs = {};           // Once they are known.
  std::string service_tier = "default";
  std::set<std::string> custom_tools = {};  // Names of tools whose input is text.
};

struct ChatRequest {
  engine::Request request;
  Answering answering;
};

// Throws a 400, or a 404 for an unknown model.
ChatRequest read_chat(const Json& body, const ServedModel& model);

// A list of messages with known roles, as templates take it: calls of custom tools are calls of
// functions. Throws a 400.
Json read_messages(const Json& messages, const std::string& path);

// `continue_final_message`: the answer continues the last message.
bool read_continuation(Fields& fields);

// `stream`, `stream_options`, and members that change nothing.
void read_streaming(Fields& fields, Answering& answering);

struct ChatTools {
  std::optional<Json> functions = {};  // In OpenAI's form; none for an empty list.
  std::set<std::string> custom = {};   // Names of those whose input is text.
};

// Throws a 400.
ChatTools read_tools(Fields& fields);

}  // namespace saker::server::openai
