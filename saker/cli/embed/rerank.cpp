// SPDX-License-Identifier: Apache-2.0
// `saker rerank`: scores documents by a query.
#include "saker/base/json/json.h"
#include "saker/cli/embed/text_inputs.h"
#include "saker/cli/io/output.h"
#include "saker/cli/io/result_json.h"
#include "saker/cli/options/checks.h"
#include "saker/cli/options/command.h"
#include "saker/cli/options/model_args.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace saker::cli {
namespace {

struct RerankArgs {
  ModelArgs model;
  TextArgs texts;
  std::string adapter;
  double adapter_scale = 1.0;
  bool json = false;
  engine::RerankRequest request;
};

int run_rerank(RerankArgs args) {
  engine::RerankRequest& request = args.request;
  request.documents = read_texts(args.texts);
  const auto engine = load_engine(args.model, whole_adapter(args.adapter, args.adapter_scale));
  const engine::RerankResult result = engine->rerank(request);
  if (result.truncated > 0) {
    spdlog::warn(
        "{} of {} documents are cut to the model's context",
        result.truncated,
        request.documents.size()
    );
  }
  Json results = Json::array();
  for (const std::size_t index : engine::best_first(result.scores)) {
    results.push_back({{"index", index}, {"score", result.scores[index]}});
    if (!args.json) {
      print_text(fmt::format("{:.4f}  {}  ", result.scores[index], index));
      print_text(request.documents[index] + "\n");
    }
  }
  if (args.json) {
    print(dump_line({{"results", std::move(results)}, {"tokens", result.tokens}}));
  }
  return 0;
}

}  // namespace

void add_rerank(CLI::App& app, Action& action) {
  auto args = std::make_shared<RerankArgs>();
  CLI::App& command = *app.add_subcommand("rerank", "Order documents by how they answer a query");
  add_model_args(command, args->model);
  command.add_option("-q,--query", args->request.query, "The query")
      ->required()
      ->type_name("TEXT")
      ->group("Input");
  const TextOptions input = add_text_args(command, args->texts, "Documents");
  command
      .add_option(
          "--instruction", args->request.instruction, "The task, in a sentence [the model's own]"
      )
      ->type_name("TEXT")
      ->group("Input");
  command
      .add_flag(
          "--truncate",
          args->request.truncate,
          "Cut documents that are longer than the model's context, which are an error otherwise"
      )
      ->group("Input");
  add_adapter_args(command, args->adapter, args->adapter_scale);
  command.add_flag(
      "--json", args->json, "Print {\"results\": [{\"index\", \"score\"}], \"tokens\"}, best first"
  );
  command.callback([=, &action] {
    require_one("documents", {input.texts, input.file});
    args->request.view = {.adapter = args->adapter, .strength = args->adapter_scale};
    action = [args] { return run_rerank(*args); };
  });
}

}  // namespace saker::cli
