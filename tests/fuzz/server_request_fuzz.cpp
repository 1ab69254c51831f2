// SPDX-License-Identifier: Apache-2.0
// Any bytes as a connection's requests, and as a body of each API: requests, or typed errors.
#include "saker/base/error.h"
#include "saker/server/api/anthropic/messages_request.h"
#include "saker/server/api/ollama/request.h"
#include "saker/server/api/openai/chat_request.h"
#include "saker/server/api/openai/completion.h"
#include "saker/server/api/responses/request.h"
#include "saker/server/http/access.h"
#include "saker/server/http/request_reader.h"
#include "saker/server/turns/fields.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace saker::server {
namespace {

// A model that is never run.
class NoModel : public engine::LanguageModel {
 public:
  NoModel() {
    facts_.vocab_size = 1000;
    facts_.context_length = 1000;
  }

  engine::Stream submit(engine::Request /*request*/) override {
    throw Error(ErrorCode::kUnsupported, "no model");
  }

  std::vector<engine::ScoreOutcome> score(std::span<const engine::ScoreRequest> /*requests*/
  ) override {
    return {};
  }

  engine::EmbedResult embed(const engine::EmbedRequest& /*request*/) override { return {}; }

  engine::RerankResult rerank(const engine::RerankRequest& /*request*/) override { return {}; }

  std::vector<std::int32_t> prompt_tokens(const engine::Request& /*request*/) const override {
    return {};
  }

  const engine::ModelFacts& facts() const override { return facts_; }

  const text::Tokenizer* tokenizer() const override { return nullptr; }

  const text::ChatTemplate* chat_template() const override { return nullptr; }

  sample::SamplingOptions recommended_sampling() const override { return {}; }

 private:
  engine::ModelFacts facts_;
};

template <typename Read>
void try_reading(Read read) {
  try {
    read();
  } catch (const ApiError&) {  // The expected answer to most inputs.
  } catch (const Error&) {
  }
}

void read_connection(std::string_view bytes) {
  static const http::Limits limits{.head_bytes = 4096, .headers = 32, .body_bytes = 4096};
  static const http::Access access({.keys = {{"a", "b"}}});
  http::RequestReader reader(limits);
  auto stage = reader.take(bytes.substr(0, bytes.size() / 2));
  for (int i = 0; i < 16 && stage == http::RequestReader::Stage::kDone; ++i) {
    const http::Request request = reader.release();
    static_cast<void>(access.check_source(request));
    static_cast<void>(access.caller(request));
    static_cast<void>(access.preflight(request));
    stage = reader.take(i == 0 ? bytes.substr(bytes.size() / 2) : std::string_view());
  }
}

void read_all(std::string_view bytes) {
  static NoModel no_model;
  static const ServedModel model(no_model, {.names = {"m"}});
  read_connection(bytes);
  try_reading([&] {
    const Json body = parse_body(std::string(bytes));
    try_reading([&] { openai::read_chat(body, model); });
    try_reading([&] { openai::read_completion(body, model); });
    try_reading([&] { anthropic::read_messages(body, model, anthropic::Purpose::kAnswer); });
    try_reading([&] { ollama::read_request(body, ollama::Form::kChat, model); });
    try_reading([&] { ollama::read_request(body, ollama::Form::kGenerate, model); });
    responses::ResponseStore store;
    try_reading([&] { responses::read_responses(body, model, store); });
  });
}

}  // namespace
}  // namespace saker::server

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  saker::server::read_all({reinterpret_cast<const char*>(data), size});
  return 0;
}
