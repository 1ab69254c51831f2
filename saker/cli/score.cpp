// SPDX-License-Identifier: Apache-2.0
// `saker score`: log-probabilities of given tokens.
#include "saker/base/error.h"
#include "saker/cli/command.h"
#include "saker/cli/json_lines.h"
#include "saker/cli/model_args.h"
#include "saker/cli/output.h"
#include "saker/cli/request_fields.h"
#include "saker/cli/result_json.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace saker::cli {
namespace {

struct ScoreArgs {
  ModelArgs model;
  std::optional<std::string> prompt;
  std::optional<std::string> completion;
  std::optional<std::string> text;
  std::string tokens;
  std::string prompt_tokens;
  std::string file;
  int top_k = 10;
  int kv_bits = 16;
  bool json = false;
};

std::string text_member(const Json& record, const char* key) {
  const Json& value = record.at(key);
  require(
      value.is_string(),
      ErrorCode::kInvalidArgument,
      "{}: got {}, expected a text",
      key,
      value.type_name()
  );
  return value.get<std::string>();
}

std::vector<std::int32_t> token_member(const Json& record, const char* key) {
  engine::GenerateRequest holder;
  apply_record({{"tokens", record.at(key)}}, holder);
  return *holder.tokens;
}

engine::ScoreRequest make_request(const Json& record, const ScoreArgs& args) {
  require(
      record.is_object(),
      ErrorCode::kInvalidArgument,
      "expected a JSON object, got {}",
      record.type_name()
  );
  engine::ScoreRequest request;
  request.top_k = args.top_k;
  request.kv_bits = args.kv_bits;
  for (const auto& [key, value] : record.items()) {
    if (key == "text") {
      request.text = text_member(record, "text");
    } else if (key == "prompt") {
      request.prompt = text_member(record, "prompt");
    } else if (key == "completion") {
      request.completion = text_member(record, "completion");
    } else if (key == "tokens") {
      request.tokens = token_member(record, "tokens");
    } else if (key == "prompt_tokens") {
      request.prompt_tokens = token_member(record, "prompt_tokens");
    } else {
      require(key == "id", ErrorCode::kInvalidArgument, "unknown option {:?}", key);
    }
  }
  return request;
}

int score_records(engine::Engine& engine, const ScoreArgs& args) {
  JsonLines lines(args.file);
  int failures = 0;
  while (const auto line = lines.next()) {
    Json id(Json::value_t::discarded);
    try {
      const Json record = parse_json(*line, lines.where());
      if (record.is_object() && record.contains("id")) {
        id = record["id"];
      }
      print(dump_line(with_id(id, to_json(engine.score(make_request(record, args))))));
    } catch (const Error& error) {
      ++failures;
      print(dump_line(record_error(id, error)));
    }
  }
  require(failures == 0, ErrorCode::kInvalidArgument, "{}: {} records failed", args.file, failures);
  return 0;
}

std::string quoted_piece(const text::Tokenizer& tokenizer, std::int32_t id) {
  return fmt::format("{:?}", tokenizer.has_token(id) ? tokenizer.token_piece(id) : "");
}

void print_table(const engine::ScoreResult& result, const text::Tokenizer* tokenizer) {
  for (std::size_t i = 0; i < result.tokens.size(); ++i) {
    const std::int32_t id = result.tokens[i];
    const auto& logprob = result.logprobs[i];
    print(fmt::format(
        "{:>10}  {:>8}{}\n",
        logprob ? fmt::format("{:.4f}", *logprob) : "-",
        id,
        tokenizer == nullptr ? "" : "  " + quoted_piece(*tokenizer, id)
    ));
  }
  print(fmt::format("sum {:.4f}, mean {:.4f}\n", result.sum, result.mean));
}

int run_score(const ScoreArgs& args) {
  const auto engine = load_engine(args.model);
  if (!args.file.empty()) {
    return score_records(*engine, args);
  }
  engine::ScoreRequest request;
  request.top_k = args.top_k;
  request.kv_bits = args.kv_bits;
  request.text = args.text;
  request.prompt = args.prompt;
  request.completion = args.completion;
  if (!args.tokens.empty()) {
    request.tokens = parse_token_list(args.tokens);
    request.prompt_tokens = parse_token_list(args.prompt_tokens);
  }
  const engine::ScoreResult result = engine->score(request);
  if (args.json) {
    print(dump_line(to_json(result)));
  } else {
    print_table(result, engine->tokenizer());
  }
  return 0;
}

}  // namespace

void add_score(CLI::App& app, Action& action) {
  auto args = std::make_shared<ScoreArgs>();
  CLI::App& command =
      *app.add_subcommand("score", "Log-probabilities of a text, completion or tokens");
  auto* input =
      command.add_option_group("Input", "Exactly one of --completion, --text, --tokens, -f");
  auto* completion = input->add_option("--completion", args->completion, "Scored after --prompt")
                         ->type_name("TEXT");
  input->add_option("--text", args->text, "Scored as a whole")->type_name("TEXT");
  auto* tokens = input->add_option("--tokens", args->tokens, "Token ids, used as they are: 1,2,3")
                     ->type_name("IDS");
  input
      ->add_option(
          "-f,--file",
          args->file,
          "FILE.jsonl of {\"id\", \"prompt\", \"completion\" | \"text\" | \"tokens\"}, answered a "
          "line each"
      )
      ->type_name("FILE");
  input->require_option(1);
  add_model_args(command, args->model);
  command.add_option("--prompt", args->prompt, "Text before the completion, not scored")
      ->needs(completion)
      ->type_name("TEXT");
  completion->needs(command.get_option("--prompt"));
  command.add_option("--prompt-tokens", args->prompt_tokens, "Ids before --tokens, not scored")
      ->needs(tokens)
      ->type_name("IDS");
  command.add_option("--top-k", args->top_k, "Next-token candidates to report; 0: none [10]")
      ->check(CLI::Range(0, 1 << 20))
      ->type_name("INT");
  add_kv_bits(command, args->kv_bits);
  command.add_flag("--json", args->json, "Print one JSON object");
  command.callback([args, &action] { action = [args] { return run_score(*args); }; });
}

}  // namespace saker::cli
