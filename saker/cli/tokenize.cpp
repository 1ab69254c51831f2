// SPDX-License-Identifier: Apache-2.0
// `saker tokenize` and `saker detokenize`: a tokenizer's own encode and decode. Need only tokenizer
// files.
#include "saker/base/json.h"
#include "saker/cli/command.h"
#include "saker/cli/model_args.h"
#include "saker/cli/output.h"
#include "saker/cli/request_fields.h"
#include "saker/cli/result_json.h"
#include "saker/load/foreign/text_folder.h"
#include "saker/load/model_dir.h"
#include "saker/text/tokenizer.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <string>

namespace saker::cli {
namespace {

struct TokenizeArgs {
  std::string model;
  std::string text;
  std::string file;
  std::string tokens;
  bool no_special = false;
  bool skip_special = false;
  bool json = false;
};

std::shared_ptr<const text::Tokenizer> load_tokenizer(const std::string& model) {
  const load::TextFolder folder(load::resolve_model(model));
  const text::TokenizerConfig config = text::load_tokenizer_config(folder.path());
  auto tokenizer = text::Tokenizer::load(folder.path(), config);
  for (const std::string& warning : config.warnings) {
    spdlog::warn("{}", warning);
  }
  if (const std::string moved = tokenizer->moved_tokens(); !moved.empty()) {
    spdlog::warn("{}", moved);
  }
  return tokenizer;
}

int run_tokenize(const TokenizeArgs& args) {
  const auto tokenizer = load_tokenizer(args.model);
  const std::string text = args.file.empty() ? args.text : read_text(args.file);
  const auto tokens = tokenizer->encode(text, {.add_special_tokens = !args.no_special});
  Json pieces = Json::array();
  for (const std::int32_t id : tokens) {
    pieces.push_back(tokenizer->token_piece(id));
  }
  if (args.json) {
    print(dump_line({{"tokens", tokens}, {"pieces", std::move(pieces)}}));
  } else {
    print(fmt::format("{}\n", fmt::join(tokens, ",")));
  }
  return 0;
}

int run_detokenize(const TokenizeArgs& args) {
  const auto tokenizer = load_tokenizer(args.model);
  const std::string text = tokenizer->decode(
      parse_token_list("--tokens", args.tokens), {.skip_special_tokens = args.skip_special}
  );
  if (args.json) {
    print(dump_line({{"text", text}}));
  } else {
    print_text(text + "\n");
  }
  return 0;
}

}  // namespace

void add_tokenize(CLI::App& app, Action& action) {
  auto args = std::make_shared<TokenizeArgs>();
  CLI::App& command = *app.add_subcommand("tokenize", "Text to token ids");
  auto* input = command.add_option_group("Input", "Exactly one of these");
  input->add_option("-t,--text", args->text, "The text")->type_name("TEXT");
  input->add_option("-f,--file", args->file, "A file, byte for byte; '-': standard input")
      ->type_name("FILE");
  input->require_option(1);
  add_model_positional(command, args->model);
  command.add_flag("--no-special", args->no_special, "Add no special tokens");
  command.add_flag("--json", args->json, "Print {\"tokens\", \"pieces\"}");
  command.callback([args, &action] { action = [args] { return run_tokenize(*args); }; });
}

void add_detokenize(CLI::App& app, Action& action) {
  auto args = std::make_shared<TokenizeArgs>();
  CLI::App& command = *app.add_subcommand("detokenize", "Token ids to text");
  add_model_positional(command, args->model);
  command.add_option("--tokens", args->tokens, "Token ids: 1,2,3")->required()->type_name("IDS");
  command.add_flag("--skip-special", args->skip_special, "Leave special tokens out");
  command.add_flag("--json", args->json, "Print {\"text\"}");
  command.callback([args, &action] { action = [args] { return run_detokenize(*args); }; });
}

}  // namespace saker::cli
