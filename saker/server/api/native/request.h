// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads requests of llama-server's /completion and /infill.

#include "saker/base/json/json.h"
#include "saker/engine/request.h"
#include "saker/server/turns/served_model.h"

#include <optional>
#include <string>
#include <vector>

namespace saker::server::native {

struct NativeRequest {
  std::vector<engine::Prompt> prompts;
  engine::Request request;  // Without a prompt.
  std::string model;        // As it was asked for.
  bool streams = false;
  bool has_list = false;       // `prompt` is a list of prompts, and so is the answer.
  bool has_no_answer = false;  // n_predict is 0: the prompt runs alone, so that its rows are kept.
  bool returns_tokens = false;
  std::optional<int> top = {};  // Alternatives per token; none: no log-probabilities.
  std::vector<std::string> response_fields = {};  // Paths such as "timings/prompt_n"; none: all.
};

// These throw a 400, or a 404 for an unknown model.
NativeRequest read_completion(const Json& body, const ServedModel& model);
NativeRequest read_infill(const Json& body, const ServedModel& model);

}  // namespace saker::server::native
