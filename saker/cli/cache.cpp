// SPDX-License-Identifier: Apache-2.0
// `saker cache`: prompt-cache files, made from a prompt, shown and converted.
#include "saker/cli/io/json_lines.h"
#include "saker/cli/io/output.h"
#include "saker/cli/io/result_json.h"
#include "saker/cli/options/checks.h"
#include "saker/cli/options/command.h"
#include "saker/cli/options/model_args.h"
#include "saker/cli/options/token_list.h"
#include "saker/cli/requests/streaming.h"
#include "saker/load/prompt_cache.h"
#include "saker/load/prompt_cache_report.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>
#include <string>

namespace saker::cli {
namespace {

struct SaveArgs {
  ModelArgs model;
  std::string prompt;
  std::string file;
  std::string tokens;
  std::string cache_in;
  std::string output;
  std::string adapter;
  double adapter_scale = 1.0;
  int max_kv_size = 0;
  int kv_bits = 16;
  bool json = false;
};

int run_save(const SaveArgs& args) {
  engine::Request request;
  if (!args.tokens.empty()) {
    request.prompt.tokens = parse_token_list("--tokens", args.tokens);
  } else {
    request.prompt.text = args.file.empty() ? args.prompt : read_text(args.file);
  }
  request.output.max_tokens = 1;  // It is chosen, but never run.
  request.placement.adapter = args.adapter;
  request.placement.adapter_scale = args.adapter_scale;
  request.placement.max_kv_size = args.max_kv_size;
  request.placement.kv_bits = args.kv_bits;
  request.prompt.cache_in = args.cache_in;
  request.output.cache_out = args.output;
  const auto engine = load_engine(args.model, whole_adapter(args.adapter, args.adapter_scale));
  const engine::GenerateResult result = stream_request(*engine, std::move(request), {});
  const Json json = {{"file", args.output}, {"prompt_tokens", result.prompt_tokens}};
  print(
      args.json ? dump_line(json)
                : fmt::format("{} tokens in {}\n", result.prompt_tokens.size(), args.output)
  );
  return 0;
}

void add_save(CLI::App& app, Action& action) {
  auto args = std::make_shared<SaveArgs>();
  CLI::App& command = *app.add_subcommand("save", "Run a prompt and keep its cache in a file");
  add_model_args(command, args->model);
  auto* prompt = command.add_option("PROMPT,-p,--prompt", args->prompt, "The prompt's text");
  prompt->type_name("TEXT")->group("Prompt");
  auto* file = command.add_option(
      "-f,--file", args->file, "A file with the prompt, byte for byte ('-': standard input)"
  );
  file->type_name("FILE")->group("Prompt");
  auto* tokens = command.add_option("--tokens", args->tokens, "Token ids, used as they are: 1,2,3");
  tokens->type_name("IDS")->group("Prompt");
  command.add_option("-o,--output", args->output, "The file to write")
      ->required()
      ->type_name("FILE");
  command
      .add_option(
          "--cache-in", args->cache_in, "Continue after the tokens in this prompt-cache file"
      )
      ->type_name("FILE");
  command
      .add_option(
          "--max-kv-size", args->max_kv_size, "Tokens that the cache keeps at most; 0: all [0]"
      )
      ->type_name("INT")
      ->group("Cache");
  add_kv_bits(command, args->kv_bits);
  add_adapter_args(command, args->adapter, args->adapter_scale);
  command.add_flag("--json", args->json, "Print one JSON object");
  command.callback([=, &action] {
    require_one("a prompt", {prompt, file, tokens});
    action = [args] { return run_save(*args); };
  });
}

struct FileArgs {
  std::string input;
  std::string output;
  bool json = false;
};

void add_info(CLI::App& app, Action& action) {
  auto args = std::make_shared<FileArgs>();
  CLI::App& command = *app.add_subcommand("info", "Describe a prompt-cache file");
  command.add_option("FILE", args->input, "A prompt-cache file of any format")->required();
  command.add_flag("--json", args->json, "Print one JSON object");
  command.callback([args, &action] {
    action = [args] {
      const load::PromptCache cache = load::read_prompt_cache(args->input);
      print(
          args->json ? dump_line(load::prompt_cache_json(cache)) : load::prompt_cache_text(cache)
      );
      return 0;
    };
  });
}

void add_file_convert(CLI::App& app, Action& action) {
  auto args = std::make_shared<FileArgs>();
  CLI::App& command = *app.add_subcommand(
      "convert", "Write a prompt-cache file of any format in that of mlx-lm 0.32.2"
  );
  command.add_option("FILE", args->input, "The file to read")->required();
  command.add_option("OUTPUT", args->output, "The file to write")->required();
  command.callback([args, &action] {
    action = [args] {
      load::write_prompt_cache(args->output, load::read_prompt_cache(args->input));
      return 0;
    };
  });
}

}  // namespace

void add_cache(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand("cache", "Save, describe and convert prompt-cache files");
  command.require_subcommand(1);
  add_save(command, action);
  add_info(command, action);
  add_file_convert(command, action);
}

}  // namespace saker::cli
