// SPDX-License-Identifier: Apache-2.0
// `saker run`: a chat on a terminal, which asks for a model if none is named; one answer with -p or when standard input is no terminal.
#include "saker/base/characters/printable.h"
#include "saker/base/error.h"
#include "saker/cli/chat/answer_view.h"
#include "saker/cli/chat/chat.h"
#include "saker/cli/chat/chat_model.h"
#include "saker/cli/chat/repl.h"
#include "saker/cli/chat/terminal.h"
#include "saker/cli/chat/typed_ahead.h"
#include "saker/cli/hub/consent.h"
#include "saker/cli/hub/fetch_model.h"
#include "saker/cli/io/interrupt.h"
#include "saker/cli/io/output.h"
#include "saker/cli/offer/choose_model.h"
#include "saker/cli/options/command.h"
#include "saker/cli/options/model_args.h"
#include "saker/cli/requests/request_args.h"
#include "saker/load/files/model_dir.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <filesystem>
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

// Standard input as one question, without trailing line ends.
std::string piped_question() {
  std::string text = read_stdin();
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) {
    text.pop_back();
  }
  return text;
}

// Loads the model with the command line's options; if it is another model than they name, without
// their draft and adapter.
ChatModel load_chat_model(const RunArgs& args, const std::optional<std::string>& other) {
  ModelArgs model_args = args.model;
  if (other) {
    model_args.model = *other;
    model_args.draft.clear();
  }
  const ModelDefaults model(model_args.model);
  model_args.engine.chats = true;
  ChatModel result;
  result.engine =
      load_engine(model_args, other ? model.adapter() : args.request.whole_adapter(model));
  result.engine->require_text();
  if (result.engine->chat_template() == nullptr) {
    spdlog::warn("the model has no chat template: it continues your text instead of answering");
  }
  result.defaults.sampling = result.engine->recommended_sampling();
  result.defaults.output.max_tokens = engine::kNoTokenLimit;
  args.request.warn(*result.engine);
  args.request.apply(model, result.defaults);
  result.has_seed = args.request.gives("seed") || model.gives("seed");
  if (other) {
    result.defaults.placement.adapter = model.adapter();
    result.defaults.placement.adapter_scale = 1.0;
  }
  result.opening = model.opening(args.system);
  return result;
}

int answer_one(Chat& chat, const std::string& question) {
  const Terminal terminal;
  AnswerView view(terminal, {.has_spinner = false});
  StreamHooks hooks;
  hooks.on_reasoning = [&](std::string_view piece) { view.think(piece); };
  hooks.on_content = [&](std::string_view piece) { view.say(piece); };
  const engine::GenerateResult result = chat.ask(question, hooks);
  view.end();
  for (const text::ToolCall& call : chat.open_calls()) {
    print(printable_line(fmt::format("{} {}", call.name, call.arguments)) + "\n");
  }
  warn_of_cut(result, chat.engine());
  return 0;
}

int run_chat(const RunArgs& args) {
  if (!args.prompt && isatty(STDIN_FILENO) == 1) {
    RunArgs chosen = args;
    if (args.model.model.empty() && can_ask()) {
      chosen.model.model = choose_model();
      fetch_missing_model(chosen.model.model, false);
    }
    InterruptWatcher watcher(WatchedSignals::kAllEnds);
    const TypedAhead typed_ahead;
    watcher.before_end([&typed_ahead] { typed_ahead.restore(); });
    watcher.end_program();
    Chat chat(load_chat_model(chosen, std::nullopt));
    return run_repl(
        chat, [&chosen](const std::string& name) { return load_chat_model(chosen, name); }, watcher
    );
  }
  static_cast<void>(load::resolve_model(args.model.model));  // Reports a wrong name first.
  const std::string question = args.prompt ? *args.prompt : piped_question();
  require(!question.empty(), ErrorCode::kInvalidArgument, "the question is empty");
  Chat chat(load_chat_model(args, std::nullopt));
  return answer_one(chat, question);
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
  args->request.add_to(command, &engine::Doors::run);
  command.callback([args, &action] {
    args->request.check();
    action = [args] { return run_chat(*args); };
  });
}

}  // namespace saker::cli
