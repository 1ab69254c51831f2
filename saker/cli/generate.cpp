// SPDX-License-Identifier: Apache-2.0
// `saker generate`: one prompt, or all records of a JSON lines file together.
#include "saker/base/error.h"
#include "saker/cli/generate_records.h"
#include "saker/cli/io/output.h"
#include "saker/cli/io/result_json.h"
#include "saker/cli/options/checks.h"
#include "saker/cli/options/command.h"
#include "saker/cli/options/model_args.h"
#include "saker/cli/options/token_list.h"
#include "saker/cli/requests/request_args.h"
#include "saker/cli/requests/streaming.h"
#include "saker/engine/records/result_json.h"

#include <CLI/CLI.hpp>
#include <unistd.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace saker::cli {
namespace {

struct GenerateArgs {
  ModelArgs model;
  RequestArgs request;
  std::string prompt;
  std::string file;
  std::string tokens;
  std::string system;
  RecordsRun records;
  bool chat = false;
  bool json = false;
  bool verbose = false;
};

int generate_one(engine::Engine& engine, engine::Request request, const GenerateArgs& args) {
  const bool with_logprobs = request.output.logprobs >= 0;
  StreamHooks hooks;
  if (!args.json) {
    request.output.whole_text = true;
    hooks.on_content = [](std::string_view piece) { print_text(piece); };
  }
  const engine::GenerateResult result = stream_request(engine, std::move(request), hooks);
  if (args.json) {
    print(dump_line(to_json(result, with_logprobs)));
  } else if (!result.text.ends_with('\n')) {
    print("\n");
  }
  if (!args.json) {
    warn_of_cut(result, engine);
  }
  if (args.verbose || (!args.json && isatty(STDERR_FILENO) == 1)) {
    print_error(describe(result.stats) + "\n");
  }
  if (args.verbose) {
    print_error("caches: " + result.stats.caches + "\n");
  }
  return 0;
}

int run_generate(const GenerateArgs& args) {
  const bool records = args.file.ends_with(".jsonl");
  engine::Request request;
  if (!args.tokens.empty()) {
    request.prompt.tokens = parse_token_list("--tokens", args.tokens);
  } else if (!records) {
    request.prompt.text = args.file.empty() ? args.prompt : read_text(args.file);
  }
  require(
      records || args.records.output.empty(),
      ErrorCode::kInvalidArgument,
      "--output goes with -f FILE.jsonl, got {:?}",
      args.file
  );
  require(
      !records || !(args.request.gives("cache_in") || args.request.gives("cache_out")),
      ErrorCode::kInvalidArgument,
      "--cache-in and --cache-out go with one prompt, not with a file of records"
  );
  const ModelDefaults model(args.model.model);
  ModelArgs model_args = args.model;
  model_args.engine.chats = args.chat;
  model_args.engine.target_itl = 0.0;  // Nobody watches single tokens: whole steps are faster.
  const auto engine = load_engine(model_args, args.request.whole_adapter(model));
  if (!args.json && request.prompt.tokens) {
    engine->require_text();
  }
  if (args.chat) {
    request.sampling = engine->recommended_sampling();
  }
  args.request.warn(*engine);
  args.request.apply(model, request);
  const ChatOptions chat{args.chat, model.opening(args.system)};
  if (records) {
    RecordsRun run = args.records;
    run.file = args.file;
    run.defaults = std::move(request);
    run.chat = chat;
    run.batch = args.model.engine.batch;
    return generate_records(*engine, run);
  }
  as_chat(request, chat);
  return generate_one(*engine, std::move(request), args);
}

}  // namespace

void add_generate(CLI::App& app, Action& action) {
  auto args = std::make_shared<GenerateArgs>();
  CLI::App& command =
      *app.add_subcommand("generate", "Continue a prompt, or answer many of a file together");
  add_model_args(command, args->model);
  auto* prompt = command.add_option("PROMPT,-p,--prompt", args->prompt, "The prompt's text");
  prompt->type_name("TEXT")->group("Prompt");
  auto* file = command.add_option(
      "-f,--file",
      args->file,
      "A file with the prompt, byte for byte ('-': standard input); FILE.jsonl: one record a line, "
      "answered a line each"
  );
  file->type_name("FILE")->group("Prompt");
  auto* tokens = command.add_option("--tokens", args->tokens, "Token ids, used as they are: 1,2,3");
  tokens->type_name("IDS")->group("Prompt");
  add_fast_prefill(command, args->model);
  add_draft_args(command, args->model);
  add_prefix_cache_args(command, args->model);
  auto* chat =
      command.add_flag("--chat", args->chat, "Apply the model's chat template to the prompt")
          ->excludes(tokens)
          ->group("Prompt");
  command.add_option("--system", args->system, "System message, with --chat")
      ->needs(chat)
      ->type_name("TEXT")
      ->group("Prompt");
  command.add_option("--batch", args->model.engine.batch, "Records that run in one batch [8]")
      ->check(between(1, 1024))
      ->type_name("INT")
      ->group("Engine");
  add_record_files(command, args->records, *file);
  args->request.add_to(command, &engine::Doors::generate);
  command.add_flag("--json", args->json, "Print one JSON object");
  command
      .add_flag(
          "-v,--verbose", args->verbose, "Print statistics and what the caches hold on stderr"
      )
      ->group("Output");
  command.callback([=, &action, &command] {
    require_one("a prompt", {prompt, file, tokens});
    args->request.check();
    set_job(args->records, command, args->model.model);
    action = [args] { return run_generate(*args); };
  });
}

}  // namespace saker::cli
