// SPDX-License-Identifier: Apache-2.0
// `saker score`: log-probabilities of given tokens.
#include "saker/base/atomic_file.h"
#include "saker/base/error.h"
#include "saker/cli/command.h"
#include "saker/cli/model_args.h"
#include "saker/cli/output.h"
#include "saker/cli/request_fields.h"
#include "saker/cli/result_json.h"
#include "saker/cli/score/html.h"
#include "saker/cli/score/logits_file.h"
#include "saker/cli/score/records.h"
#include "saker/cli/score/views.h"
#include "saker/engine/preflight.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
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
  RecordsInput records;
  engine::ScoreRequest options;  // Those that all inputs share.
  ViewArgs views;
  std::filesystem::path trace;   // Empty: none.
  std::filesystem::path logits;  // Empty: none.
  bool preflight = false;
  bool has_input = false;
  bool json = false;

  ScoreArgs() { options.top_k = 10; }
};

std::string quoted_piece(const text::Tokenizer& tokenizer, std::int32_t id) {
  return fmt::format("{:?}", tokenizer.has_token(id) ? tokenizer.token_piece(id) : "");
}

void print_row(
    const std::optional<double>& logprob, std::int32_t id, const text::Tokenizer* tokenizer
) {
  print(fmt::format(
      "{:>10}  {:>8}{}\n",
      decimals(logprob),
      id,
      tokenizer == nullptr ? "" : "  " + quoted_piece(*tokenizer, id)
  ));
}

void print_candidates(const score::NextDistribution& next, const text::Tokenizer* tokenizer) {
  for (std::size_t i = 0; i < next.token_ids.size(); ++i) {
    print_row(next.logprobs[i], next.token_ids[i], tokenizer);
  }
  if (next.tail_underflow) {
    print("all others: at most 1e-12\n");
  } else if (next.tail_logprob) {
    print(fmt::format("{:>10}  all others\n", decimals(next.tail_logprob)));
  }
}

// Where nothing is scored, as of a prompt alone, what may come next.
void print_table(const engine::ScoreResult& result, const text::Tokenizer* tokenizer) {
  for (const engine::ViewScores& view : result.views) {
    if (result.views.size() > 1) {
      print(view.view + ":\n");
    }
    const bool scored =
        std::ranges::any_of(view.logprobs, [](const auto& value) { return value.has_value(); });
    if (!scored && view.next) {
      print_candidates(*view.next, tokenizer);
      continue;
    }
    for (std::size_t i = 0; i < result.tokens.size(); ++i) {
      print_row(view.logprobs[i], result.tokens[i], tokenizer);
    }
    print(fmt::format("sum {}, mean {}\n", decimals(view.sum), decimals(view.mean)));
  }
  if (result.first_token_unscored) {
    print("nothing before the first token, which is not scored\n");
  }
  if (result.boundary_merged) {
    print(
        "a token spans the border of prompt and completion: what both have beyond the prompt's "
        "count is scored\n"
    );
  }
}

void write_page(const std::filesystem::path& path, std::string_view page) {
  AtomicFile file(path);
  file.write(page);
  file.commit();
}

std::vector<PageToken> page_tokens(
    const engine::ScoreResult& result,
    const std::vector<std::string>& pieces,
    const text::Tokenizer* tokenizer
) {
  std::vector<PageToken> tokens;
  tokens.reserve(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    tokens.push_back({pieces[i], tokenizer->is_special(result.tokens[i])});
  }
  return tokens;
}

void show(
    const engine::ScoreResult& result, const ScoreArgs& args, const text::Tokenizer* tokenizer
) {
  std::optional<engine::Differences> differences;
  const std::vector<std::string> pieces = token_pieces(result.tokens, tokenizer);
  if (args.views.diff || !args.views.html.empty()) {
    differences = engine::differences(result, args.options.views);
  }
  if (!args.views.html.empty()) {
    write_page(
        args.views.html, score_html(result, *differences, page_tokens(result, pieces, tokenizer))
    );
  }
  if (args.json) {
    Json json = to_json(result);
    if (args.views.diff) {
      json["diff"] = to_json(*differences);
    }
    print(dump_line(json));
  } else if (args.views.diff) {
    print(difference_table(result, *differences, pieces));
  } else {
    print_table(result, tokenizer);
  }
}

// Throws kUnsupported with the reason where a view gives numbers that are not finite.
void check_views(engine::Engine& engine, const ScoreArgs& args) {
  const auto found = engine::preflight_finite_check(engine, args.options.views);
  require(found.ok, ErrorCode::kUnsupported, "preflight: {}", found.reason);
}

int run_score(const ScoreArgs& given) {
  ScoreArgs args = given;
  args.options.views = parse_views(args.views);
  args.records.diff = args.views.diff;
  const auto engine = load_engine(args.model, only_adapter(args.views, args.options.views));
  if (args.preflight) {
    check_views(*engine, args);
    if (!args.has_input) {
      print(args.json ? dump_line({{"ok", true}}) : "all numbers are finite\n");
      return 0;
    }
  }
  engine::ScoreInstruments instruments({.trace = args.trace});
  if (!args.records.file.empty()) {
    return score_records(*engine, args.records, args.options, instruments);
  }
  engine::ScoreRequest request = args.options;
  request.text = args.text;
  request.prompt = args.prompt;
  request.completion = args.completion;
  if (!args.tokens.empty()) {
    request.tokens = parse_token_list("--tokens", args.tokens);
  }
  if (!args.prompt_tokens.empty()) {
    request.prompt_tokens = parse_token_list("--prompt-tokens", args.prompt_tokens);
  }
  std::optional<LogitsFile> logits;
  if (!args.logits.empty()) {
    logits.emplace(
        args.logits, request.views, engine->score_prompt(request).tokens, engine->facts().vocab_size
    );
    request.take_logits = [&](std::size_t view, std::size_t row, std::span<const float> values) {
      logits->write(view, row, values);
    };
  }
  const auto outcomes = engine->score({&request, 1}, instruments);
  if (const Error* error = std::get_if<Error>(&outcomes.front())) {
    throw Error(*error);
  }
  if (logits) {
    logits->commit();
  }
  show(std::get<engine::ScoreResult>(outcomes.front()), args, engine->tokenizer());
  return 0;
}

// What is written beside the answer.
void add_files(CLI::App& command, ScoreArgs& args, CLI::Option& records) {
  command
      .add_option(
          "--logits",
          args.logits,
          "Write the logits after each token, float32, to a .safetensors or .npy file"
      )
      ->excludes(&records)
      ->type_name("FILE");
  command
      .add_option("--trace", args.trace, "Add a JSON line for each view of each input to this file")
      ->type_name("FILE");
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
  input->add_option("--tokens", args->tokens, "Token ids, used as they are: 1,2,3")
      ->type_name("IDS");
  auto* file = input
                   ->add_option(
                       "-f,--file",
                       args->records.file,
                       "FILE.jsonl of {\"id\", \"prompt\", \"completion\" | \"text\" | "
                       "\"tokens\"}, answered a "
                       "line each"
                   )
                   ->type_name("FILE");
  input->require_option(0, 1);
  add_model_args(command, args->model);
  auto* prompt = command
                     .add_option(
                         "--prompt",
                         args->prompt,
                         "Text before the completion, not scored; alone: only its next token"
                     )
                     ->type_name("TEXT");
  completion->needs(prompt);
  prompt->excludes(file);
  auto* prompt_tokens = command
                            .add_option(
                                "--prompt-tokens",
                                args->prompt_tokens,
                                "Ids before --tokens, not scored; alone: only their next token"
                            )
                            ->excludes(prompt)
                            ->excludes(file)
                            ->type_name("IDS");
  command
      .add_option("--top-k", args->options.top_k, "Next-token candidates to report; 0: none [10]")
      ->check(CLI::Range(0, 1 << 20))
      ->type_name("INT");
  command
      .add_option(
          "--stride",
          args->options.stride,
          "Score what is longer than the context in windows that move by so many tokens; 0: refuse "
          "it [0]"
      )
      ->check(CLI::Range(0, 1 << 30))
      ->type_name("INT");
  add_kv_bits(command, args->options.kv_bits);
  add_records_input(command, args->records, *file);
  add_view_args(command, args->views);
  command.get_option("--html")->excludes(file);
  add_files(command, *args, *file);
  command.add_flag(
      "--preflight",
      args->preflight,
      "First check that all views give finite numbers; without input only that"
  );
  command.add_flag("--json", args->json, "Print one JSON object");
  command.callback([=, &action] {
    args->has_input = input->count_all() + prompt->count() + prompt_tokens->count() > 0;
    if (!args->has_input && !args->preflight) {
      throw CLI::RequiredError("one of --completion, --text, --tokens, --prompt and -f");
    }
    action = [args] { return run_score(*args); };
  });
}

}  // namespace saker::cli
