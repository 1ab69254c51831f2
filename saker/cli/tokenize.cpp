// SPDX-License-Identifier: Apache-2.0
// `saker tokenize` and `saker detokenize`: a tokenizer's own encode and decode. Need only tokenizer
// files.
#include "saker/base/json/json_numbers.h"
#include "saker/cli/io/output.h"
#include "saker/cli/io/result_json.h"
#include "saker/cli/options/checks.h"
#include "saker/cli/options/command.h"
#include "saker/cli/options/model_args.h"
#include "saker/cli/options/token_list.h"
#include "saker/load/files/model_dir.h"
#include "saker/load/sources/open_texts.h"
#include "saker/text/tokenizer.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

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
  const text::ModelTexts texts = load::open_texts(load::resolve_model(model));
  const text::TokenizerConfig config = text::load_tokenizer_config(texts);
  auto tokenizer = text::Tokenizer::load(texts, config);
  for (const std::string& warning : config.warnings) {
    spdlog::warn("{}", warning);
  }
  if (const std::string moved = tokenizer->moved_tokens(); !moved.empty()) {
    spdlog::warn("{}", moved);
  }
  return tokenizer;
}

// Prints `write`'s result for each id, comma-separated, as it goes: there may be millions.
template <typename Write>
void print_list(const std::vector<std::int32_t>& ids, Write write) {
  constexpr std::size_t kBlock = std::size_t{1} << 16;
  std::string block;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    block += i == 0 ? "" : ",";
    block += write(ids[i]);
    if (block.size() >= kBlock) {
      print(block);
      block.clear();
    }
  }
  print(block);
}

int run_tokenize(const TokenizeArgs& args) {
  const auto tokenizer = load_tokenizer(args.model);
  const auto tokens = tokenizer->encode(
      args.file.empty() ? args.text : read_text(args.file), {.add_special_tokens = !args.no_special}
  );
  const auto number = [](std::int32_t id) { return std::to_string(id); };
  if (!args.json) {
    print_list(tokens, number);
    print("\n");
    return 0;
  }
  // An id of the post-processor may have no piece; this must fail before anything is printed.
  for (const std::int32_t id : tokens) {
    tokenizer->token_piece(id);
  }
  print("{\"tokens\":[");
  print_list(tokens, number);
  print("],\"pieces\":[");
  print_list(tokens, [&](std::int32_t id) { return write_json(tokenizer->token_piece(id)); });
  print("]}\n");
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
  CLI::App& command = *app.add_subcommand("tokenize", "Turn text into token ids");
  add_model_positional(command, args->model);
  auto* text = command.add_option("TEXT,-t,--text", args->text, "The text");
  text->type_name("TEXT")->group("Input");
  auto* file =
      command.add_option("-f,--file", args->file, "A file, byte for byte; '-': standard input");
  file->type_name("FILE")->group("Input");
  command.add_flag("--no-special", args->no_special, "Add no special tokens");
  command.add_flag("--json", args->json, "Print {\"tokens\", \"pieces\"}");
  command.callback([=, &action] {
    require_one("a text", {text, file});
    action = [args] { return run_tokenize(*args); };
  });
}

void add_detokenize(CLI::App& app, Action& action) {
  auto args = std::make_shared<TokenizeArgs>();
  CLI::App& command = *app.add_subcommand("detokenize", "Turn token ids into text");
  add_model_positional(command, args->model);
  command.add_option("IDS,--tokens", args->tokens, "Token ids: 1,2,3")
      ->required()
      ->type_name("IDS")
      ->group("Input");
  command.add_flag("--skip-special", args->skip_special, "Leave special tokens out");
  command.add_flag("--json", args->json, "Print {\"text\"}");
  command.callback([args, &action] { action = [args] { return run_detokenize(*args); }; });
}

}  // namespace saker::cli
