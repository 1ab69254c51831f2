// SPDX-License-Identifier: Apache-2.0
#include "saker/server/turns/token_json.h"

#include "saker/server/turns/wire.h"

#include <string>
#include <utility>

namespace saker::server {
namespace {

Json token_json(const std::string& bytes, double logprob) {
  Json numbers = Json::array();
  for (const char c : bytes) {
    numbers.push_back(static_cast<unsigned char>(c));
  }
  return {{"token", bytes}, {"logprob", finite_logprob(logprob)}, {"bytes", std::move(numbers)}};
}

}  // namespace

Json token_logprobs(
    const std::vector<engine::TokenEvent>& tokens, const text::Tokenizer* tokenizer
) {
  Json list = Json::array();
  for (const engine::TokenEvent& token : tokens) {
    Json entry = token_json(token.bytes, token.logprob);
    Json& top = entry["top_logprobs"] = Json::array();
    for (const auto& [id, logprob] : token.top) {
      top.push_back(token_json(tokenizer == nullptr ? "" : tokenizer->token_bytes(id), logprob));
    }
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace saker::server
