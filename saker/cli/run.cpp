// SPDX-License-Identifier: Apache-2.0
// `saker run`: a chat on a terminal; one answer with -p or when standard input is no terminal.
#include "saker/base/error.h"
#include "saker/cli/chat/conversation.h"
#include "saker/cli/chat/repl.h"
#include "saker/cli/command.h"
#include "saker/cli/model_args.h"
#include "saker/cli/output.h"
#include "saker/cli/request_args.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace saker::cli {
namespace {

struct RunArgs {
  ModelArgs model;
  RequestArgs request;
  std::optional<std::string> prompt;
  std::string system;
};

// Standard input as one question, without the line ends behind it.
std::string piped_question() {
  std::string text = read_stdin();
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) {
    text.pop_back();
  }
  return text;
}

int answer_one(Conversation& conversation, const std::string& question) {
  const auto result =
      conversation.ask(question, {[](std::string_view piece) { print_text(piece); }, {}});
  if (!result.text.ends_with('\n')) {
    print("\n");
  }
  return 0;
}

int run_chat(const RunArgs& args) {
  const bool interactive = !args.prompt && isatty(STDIN_FILENO) == 1;
  std::optional<InterruptWatcher> watcher;
  std::string question;
  if (interactive) {
    watcher.emplace();
    watcher->end_program();
  } else {
    question = args.prompt ? *args.prompt : piped_question();
    require(!question.empty(), ErrorCode::kInvalidArgument, "the question is empty");
  }
  const ModelDefaults model(args.model.model);
  ModelArgs model_args = args.model;
  model_args.engine.chats = true;
  const auto engine = load_engine(model_args, args.request.whole_adapter(model));
  engine->require_text();
  if (engine->chat_template() == nullptr) {
    spdlog::warn("the model has no chat template: it continues your text instead of answering");
  }
  engine::GenerateRequest defaults;
  defaults.sampling = engine->recommended_sampling();
  args.request.warn(*engine);
  args.request.apply(model, defaults);
  Conversation conversation(*engine, defaults, model.opening(args.system));
  return interactive ? run_repl(conversation, *engine, *watcher)
                     : answer_one(conversation, question);
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  auto args = std::make_shared<RunArgs>();
  CLI::App& command =
      *app.add_subcommand("run", "Chat with a model; one answer with -p or piped input");
  add_model_args(command, args->model);
  add_fast_prefill(command, args->model);
  add_draft_args(command, args->model);
  add_prefix_cache_args(command, args->model);
  command.add_option("PROMPT,-p,--prompt", args->prompt, "Answer this and exit")
      ->type_name("TEXT")
      ->group("Prompt");
  command.add_option("--system", args->system, "System message")
      ->type_name("TEXT")
      ->group("Prompt");
  args->request.add_to(command);
  command.callback([args, &action] {
    args->request.check();
    action = [args] { return run_chat(*args); };
  });
}

}  // namespace saker::cli
