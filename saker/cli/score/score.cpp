// SPDX-License-Identifier: Apache-2.0
// `saker score`: log-probabilities of given tokens.
#include "saker/base/error.h"
#include "saker/base/files/atomic_file.h"
#include "saker/base/utf8.h"
#include "saker/cli/hub/size_text.h"
#include "saker/cli/io/output.h"
#include "saker/cli/io/result_json.h"
#include "saker/cli/options/checks.h"
#include "saker/cli/options/command.h"
#include "saker/cli/options/model_args.h"
#include "saker/cli/options/token_list.h"
#include "saker/cli/score/html.h"
#include "saker/cli/score/logits_file.h"
#include "saker/cli/score/records.h"
#include "saker/cli/score/views.h"
#include "saker/engine/measures/preflight.h"
#include "saker/engine/records/result_json.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
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
  engine::ScoreRequest options;  // Shared by all inputs.
  ViewArgs views;
  std::filesystem::path trace;   // Empty: none.
  std::filesystem::path logits;  // Empty: none.
  bool preflight = false;
  bool has_input = false;
  bool json = false;

  ScoreArgs() { options.top_k = 10; }
};

// The text in quotes, as in all tables of tokens.
std::string quoted_text(const std::string& text) {
  return quote(text, text.size());
}

void print_row(const std::optional<double>& logprob, std::int32_t id, const std::string& text) {
  print(fmt::format("{:>10}  {:>8}  {}\n", decimals(logprob), id, text));
}

// The text of one token by itself; incomplete characters are shown as bytes.
std::string text_alone(const text::Tokenizer* tokenizer, std::int32_t id) {
  if (tokenizer == nullptr || !tokenizer->has_token(id)) {
    return {};
  }
  return quoted_text(token_pieces({id}, tokenizer).front());
}

void print_candidates(const score::NextDistribution& next, const text::Tokenizer* tokenizer) {
  for (std::size_t i = 0; i < next.token_ids.size(); ++i) {
    print_row(next.logprobs[i], next.token_ids[i], text_alone(tokenizer, next.token_ids[i]));
  }
  if (next.tail_underflow) {
    print("all others: at most 1e-12\n");
  } else if (next.tail_logprob) {
    print(fmt::format("{:>10}  all others\n", decimals(next.tail_logprob)));
  }
}

// Prints a table of tokens; if nothing is scored, as for a prompt alone, the likely next tokens.
void print_table(
    const engine::ScoreResult& result,
    const std::vector<std::string>& pieces,
    const text::Tokenizer* tokenizer
) {
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
      print_row(
          view.logprobs[i], result.tokens[i], i < pieces.size() ? quoted_text(pieces[i]) : ""
      );
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

std::string now_text() {
  return time_text(std::chrono::duration_cast<std::chrono::seconds>(
                       std::chrono::system_clock::now().time_since_epoch()
  )
                       .count());
}

// Facts about a page's content.
std::vector<PageFact> page_facts(const engine::Engine& engine, const ScoreArgs& args) {
  const engine::ModelFacts& facts = engine.facts();
  std::vector<PageFact> list{
      {"model", facts.requested.empty() ? "bundled demo model" : facts.requested},
      {"architecture",
       fmt::format("{}, {} tokens of context", facts.model_type, facts.context_length)},
      {"path", facts.path.string()},
  };
  for (const std::string& adapter : args.views.adapters) {
    list.push_back({"adapter", adapter});
  }
  std::vector<std::string> views;
  views.reserve(args.options.views.size());
  for (const engine::View& view : args.options.views) {
    views.push_back(view.key);
  }
  list.push_back({"views", fmt::format("{}", fmt::join(views, ", "))});
  list.push_back(
      {"options",
       fmt::format(
           "top-k {}, stride {}, cache of {} bits, {}",
           args.options.top_k,
           args.options.stride,
           args.options.kv_bits,
           facts.instruction_set
       )}
  );
  list.push_back({"made", fmt::format("{} by saker {}", now_text(), SAKER_VERSION)});
  return list;
}

void show(const engine::ScoreResult& result, const ScoreArgs& args, const engine::Engine& engine) {
  const text::Tokenizer* tokenizer = engine.tokenizer();
  std::optional<engine::Differences> differences;
  const std::vector<std::string> pieces = token_pieces(result.tokens, tokenizer);
  if (args.views.diff || !args.views.html.empty()) {
    differences = engine::differences(result, args.options.views);
  }
  if (!args.views.html.empty()) {
    ScorePage page(page_facts(engine, args));
    page.add("", result, *differences, page_tokens(result.tokens, tokenizer));
    write_page(args.views.html, page.html());
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
    print_table(result, pieces, tokenizer);
  }
}

// Throws kUnsupported, with the reason, if a view gives non-finite numbers.
void check_views(engine::Engine& engine, const ScoreArgs& args) {
  const auto found = engine::preflight_finite_check(engine, args.options.views);
  require(found.ok, ErrorCode::kUnsupported, "preflight: {}", found.reason);
}

// Writes the page even if records failed; it then names them.
int score_file(
    engine::Engine& engine, const ScoreArgs& args, engine::ScoreInstruments& instruments
) {
  if (args.views.html.empty()) {
    return score_records(engine, args.records, args.options, instruments);
  }
  ScorePage page(page_facts(engine, args));
  RecordsInput records = args.records;
  records.page = &page;
  try {
    const int code = score_records(engine, records, args.options, instruments);
    write_page(args.views.html, page.html());
    return code;
  } catch (const Error&) {
    if (!page.empty()) {
      write_page(args.views.html, page.html());
    }
    throw;
  }
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
    return score_file(*engine, args, instruments);
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
  show(std::get<engine::ScoreResult>(outcomes.front()), args, *engine);
  return 0;
}

// The options that give the text to score. REQUIRES: the model's argument is added already.
struct InputOptions {
  CLI::Option* completion;
  CLI::Option* text;
  CLI::Option* tokens;
  CLI::Option* file;
  CLI::Option* prompt;
  CLI::Option* prompt_tokens;
};

InputOptions add_input(CLI::App& command, ScoreArgs& args) {
  InputOptions input{
      .completion = command.add_option("--completion", args.completion, "Scored after --prompt"),
      .text = command.add_option("TEXT,--text", args.text, "Scored as a whole"),
      .tokens = command.add_option("--tokens", args.tokens, "Token ids, used as they are: 1,2,3"),
      .file = command.add_option(
          "-f,--file",
          args.records.file,
          "FILE.jsonl of {\"id\", \"prompt\", \"completion\" | \"text\" | \"tokens\"}, answered a "
          "line each"
      ),
      .prompt = command.add_option(
          "-p,--prompt",
          args.prompt,
          "Text before the completion, not scored; alone: only its next token"
      ),
      .prompt_tokens = command.add_option(
          "--prompt-tokens",
          args.prompt_tokens,
          "Ids before --tokens, not scored; alone: only their next token"
      ),
  };
  for (CLI::Option* option : {input.completion, input.text, input.prompt}) {
    option->type_name("TEXT")->group("Input");
  }
  for (CLI::Option* option : {input.tokens, input.prompt_tokens}) {
    option->type_name("IDS")->group("Input");
  }
  input.file->type_name("FILE")->group("Input");
  input.completion->needs(input.prompt);
  input.prompt->excludes(input.file)->excludes(input.prompt_tokens);
  input.prompt_tokens->excludes(input.file);
  return input;
}

// Throws unless exactly one input is given; --preflight needs none.
void check_input(const InputOptions& input, ScoreArgs& args) {
  const bool has_prompt = input.prompt->count() + input.prompt_tokens->count() > 0;
  const auto given =
      input.completion->count() + input.text->count() + input.tokens->count() + input.file->count();
  args.has_input = given > 0 || has_prompt;
  if (given > 1 || (!args.has_input && !args.preflight)) {
    require_one("one of --prompt and", {input.completion, input.text, input.tokens, input.file});
  }
}

// Adds the options for files that are written beside the answer.
void add_files(CLI::App& command, ScoreArgs& args, CLI::Option& records) {
  command
      .add_option(
          "--logits",
          args.logits,
          "Write the logits after each token, float32, to a .safetensors or .npy file"
      )
      ->excludes(&records)
      ->type_name("FILE")
      ->group("Output");
  command
      .add_option("--trace", args.trace, "Add a JSON line for each view of each input to this file")
      ->type_name("FILE")
      ->group("Output");
}

}  // namespace

void add_score(CLI::App& app, Action& action) {
  auto args = std::make_shared<ScoreArgs>();
  CLI::App& command =
      *app.add_subcommand("score", "Compute log-probabilities of a text, completion or tokens");
  add_model_args(command, args->model);
  const InputOptions input = add_input(command, *args);
  command
      .add_option("--top-k", args->options.top_k, "Next-token candidates to report; 0: none [10]")
      ->check(between(0, 1 << 20))
      ->type_name("INT");
  command
      .add_option(
          "--stride",
          args->options.stride,
          "Score what is longer than the context in windows that move by so many tokens; 0: refuse "
          "it [0]"
      )
      ->check(between(0, 1 << 30))
      ->type_name("INT");
  add_kv_bits(command, args->options.kv_bits);
  add_records_input(command, args->records, *input.file);
  add_view_args(command, args->views);
  command.get_option("--html")->excludes(command.get_option("--resume"));
  add_files(command, *args, *input.file);
  command.add_flag(
      "--preflight",
      args->preflight,
      "First check that all views give finite numbers; without input only that"
  );
  command.add_flag("--json", args->json, "Print one JSON object");
  command.callback([=, &action, &command] {
    check_input(input, *args);
    set_job(args->records, command, args->model.model);
    action = [args] { return run_score(*args); };
  });
}

}  // namespace saker::cli
