// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/native/routes.h"

#include "saker/server/api/native/answer.h"
#include "saker/server/api/native/request.h"
#include "saker/server/api/openai/errors.h"
#include "saker/server/models/model_route.h"
#include "saker/server/turns/turn.h"
#include "saker/server/turns/wire.h"

#include <string>
#include <utility>
#include <vector>

namespace saker::server::native {
namespace {

using ExchangePtr = std::shared_ptr<http::Exchange>;
using Reader = NativeRequest (*)(const Json& body, const ServedModel& model);

http::Router::Route answer_with(const std::shared_ptr<ModelCatalog>& catalog, Reader read) {
  const auto answer = [read](const ExchangePtr& exchange, const Json& body, const ModelPtr& model) {
    const NativeRequest native = read(body, *model);
    std::vector<engine::Stream> streams;
    for (const engine::Prompt& prompt : native.prompts) {
      engine::Request request = native.request;
      request.prompt = prompt;
      streams.push_back(submit(*exchange, *model, std::move(request)));
    }
    run_turn(
        exchange,
        model,
        std::move(streams),
        1,
        answer_encoder(native, model->model().tokenizer()),
        {.streams = native.streams,
         .head = native.streams ? sse_head() : http::Response{},
         .ping = std::string(kSsePing),
         .failed = openai::error_response}
    );
  };
  return with_model(catalog, openai::kErrorShape, answer);
}

}  // namespace

void add_routes(http::Router& router, const std::shared_ptr<ModelCatalog>& catalog) {
  router.add("POST", "/completion", answer_with(catalog, read_completion));
  router.add("POST", "/infill", answer_with(catalog, read_infill));
}

}  // namespace saker::server::native
