// SPDX-License-Identifier: Apache-2.0
// `saker template`: renders chat messages to the model's prompt. Needs only tokenizer files.
#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/cli/io/output.h"
#include "saker/cli/options/command.h"
#include "saker/cli/options/model_args.h"
#include "saker/load/files/model_dir.h"
#include "saker/load/sources/open_texts.h"
#include "saker/text/chat_template.h"

#include <CLI/CLI.hpp>

#include <memory>
#include <string>

namespace saker::cli {
namespace {

struct TemplateArgs {
  std::string model;
  std::string messages;
  std::string tools;
  std::string template_kwargs = "{}";
  bool no_generation_prompt = false;
};

int run_template(const TemplateArgs& args) {
  const auto model = load::resolve_model(args.model);
  const auto chat_template = text::ChatTemplate::load(load::open_texts(model));
  require(chat_template.has_value(), ErrorCode::kNotFound, "{}: no chat template", model.string());
  text::RenderOptions options;
  options.add_generation_prompt = !args.no_generation_prompt;
  options.template_kwargs = parse_json(args.template_kwargs, "--template-kwargs");
  if (!args.tools.empty()) {
    options.tools = parse_json(read_text(args.tools), args.tools);
  }
  print_text(chat_template->render(parse_json(read_text(args.messages), args.messages), options));
  return 0;
}

}  // namespace

void add_template(CLI::App& app, Action& action) {
  auto args = std::make_shared<TemplateArgs>();
  CLI::App& command =
      *app.add_subcommand("template", "Render chat messages as the prompt a model sees");
  add_model_positional(command, args->model);
  command
      .add_option(
          "--messages",
          args->messages,
          "JSON file with [{\"role\", \"content\"}, ...]; '-': standard input"
      )
      ->required()
      ->type_name("FILE");
  command.add_option("--tools", args->tools, "JSON file with tool descriptions")->type_name("FILE");
  command
      .add_option(
          "--template-kwargs,--kwargs,--chat-template-kwargs",
          args->template_kwargs,
          "More template variables, as a JSON object"
      )
      ->type_name("JSON");
  command.add_flag(
      "--no-generation-prompt", args->no_generation_prompt, "End after the last message"
  );
  command.callback([args, &action] { action = [args] { return run_template(*args); }; });
}

}  // namespace saker::cli
