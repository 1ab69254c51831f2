// SPDX-License-Identifier: Apache-2.0
// `saker perplexity`: measures how well a model predicts a text.
#include "saker/engine/measures/perplexity.h"

#include "saker/base/error.h"
#include "saker/base/memory.h"
#include "saker/cli/io/json_lines.h"
#include "saker/cli/io/output.h"
#include "saker/cli/io/progress.h"
#include "saker/cli/io/result_json.h"
#include "saker/cli/options/checks.h"
#include "saker/cli/options/command.h"
#include "saker/cli/options/model_args.h"
#include "saker/engine/options/apply_options.h"
#include "saker/text/chat_template.h"
#include "saker/text/tokenizer.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace saker::cli {
namespace {

struct PerplexityArgs {
  ModelArgs model;
  std::string file;
  std::string adapter;
  double adapter_scale = 1.0;
  engine::PerplexityOptions options;
  bool json = false;
};

struct RecordTokens {
  std::vector<std::int32_t> ids;
  bool wants_end = false;  // An EOS follows.
};

std::vector<std::int32_t> encode(const engine::Engine& engine, const std::string& text) {
  engine::Request request;
  request.prompt.text = text;
  return engine.prompt_tokens(request);
}

// A whole conversation by the model's template, without the header of a next answer.
std::vector<std::int32_t> encode_chat(
    const engine::Engine& engine, const Json& messages, const Json& record
) {
  const auto* chat_template = engine.chat_template();
  require(
      chat_template != nullptr && engine.tokenizer() != nullptr,
      ErrorCode::kUnsupported,
      "the model has no chat template: give records of \"text\" or \"tokens\""
  );
  text::RenderOptions options;
  options.add_generation_prompt = false;
  if (record.contains("tools") && !record["tools"].is_null()) {
    options.tools = record["tools"];
  }
  return engine.tokenizer()->encode(
      chat_template->render(messages, options), {.add_special_tokens = false}
  );
}

// Null counts as absent.
bool is_given(const Json& record, const char* key) {
  return record.contains(key) && !record[key].is_null();
}

bool has_string(const Json& record, const char* key) {
  return record.contains(key) && record[key].is_string();
}

// A record's ids; keys are tried in the order of mlx-lm's data sets.
RecordTokens record_tokens(const engine::Engine& engine, const Json& record) {
  require(
      record.is_object(),
      ErrorCode::kInvalidArgument,
      "expected an object, got {}",
      record.type_name()
  );
  if (is_given(record, "tokens")) {
    engine::Request holder;
    engine::apply_record({{"tokens", record["tokens"]}}, holder);
    return {*holder.prompt.tokens};
  }
  if (has_string(record, "prompt") && has_string(record, "completion")) {
    const Json messages = {
        {{"role", "user"}, {"content", record["prompt"]}},
        {{"role", "assistant"}, {"content", record["completion"]}},
    };
    return {encode_chat(engine, messages, record)};
  }
  if (is_given(record, "messages")) {
    return {encode_chat(engine, record["messages"], record)};
  }
  require(
      has_string(record, "text"),
      ErrorCode::kInvalidArgument,
      "expected an object with a \"text\", \"tokens\", \"messages\" or \"prompt\" and "
      "\"completion\""
  );
  return {.ids = encode(engine, record["text"].get<std::string>()), .wants_end = true};
}

// Concatenates the records, with an EOS after each text, as in mlx-lm's data sets.
std::vector<std::int32_t> records_tokens(const PerplexityArgs& args, const engine::Engine& engine) {
  const auto end = engine.special_token("eos_token");
  std::vector<std::int32_t> tokens;
  JsonLines lines(args.file);
  while (const auto line = lines.next()) {
    const std::string where = lines.where();
    const Json record = parse_json(*line, where);
    RecordTokens more;
    try {
      more = record_tokens(engine, record);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", where, error.what()));
    }
    tokens.insert(tokens.end(), more.ids.begin(), more.ids.end());
    if (end && more.wants_end && (tokens.empty() || tokens.back() != *end)) {
      tokens.push_back(*end);
    }
  }
  return tokens;
}

// Shows two digits of the error: "3208.5 ± 4.2", "179000 ± 16000".
std::string with_error(double value, double error) {
  constexpr int kMaxDecimals = 4;
  if (!std::isfinite(value) || !std::isfinite(error) || error <= 0.0) {
    return fmt::format("{:.{}f} ± {:.{}f}", value, kMaxDecimals, error, kMaxDecimals);
  }
  const int decimals = std::min(1 - static_cast<int>(std::floor(std::log10(error))), kMaxDecimals);
  const double step = std::pow(10.0, std::max(-decimals, 0));
  const int shown = std::max(decimals, 0);
  return fmt::format(
      "{:.{}f} ± {:.{}f}",
      std::round(value / step) * step,
      shown,
      std::round(error / step) * step,
      shown
  );
}

int run_perplexity(PerplexityArgs args) {
  const auto engine = load_engine(args.model, whole_adapter(args.adapter, args.adapter_scale));
  args.options.view = {
      .key = args.adapter.empty() ? "base" : "adapter",
      .adapter = args.adapter,
      .strength = args.adapter_scale,
  };
  const auto tokens = args.file.ends_with(".jsonl") ? records_tokens(args, *engine)
                                                    : encode(*engine, read_text(args.file));
  std::optional<Progress> bar;
  args.options.progress = [&](std::int64_t done, std::int64_t total) {
    if (!bar) {
      bar.emplace(static_cast<std::uint64_t>(total), "scoring");
    }
    bar->set(static_cast<std::uint64_t>(done));
  };
  const auto result = engine::measure_perplexity(*engine, tokens, args.options);
  bar.reset();
  if (args.json) {
    print(dump_line({
        {"perplexity", result.perplexity},
        {"standard_error", result.standard_error},
        {"mean_loss", result.mean_loss},
        {"tokens", tokens.size()},
        {"scored", result.scored},
        {"windows", result.windows},
        {"tokens_per_second", result.tokens_per_second},
        {"peak_memory_bytes", peak_memory_bytes()},
    }));
    return 0;
  }
  print(fmt::format(
      "perplexity {}, {} of {} tokens in {} windows, {:.1f} tokens/s\n",
      with_error(result.perplexity, result.standard_error),
      result.scored,
      tokens.size(),
      result.windows,
      result.tokens_per_second
  ));
  return 0;
}

}  // namespace

void add_perplexity(CLI::App& app, Action& action) {
  auto args = std::make_shared<PerplexityArgs>();
  CLI::App& command = *app.add_subcommand("perplexity", "Measure how well a model predicts a text");
  add_model_args(command, args->model);
  command
      .add_option(
          "-f,--file",
          args->file,
          "A text, or FILE.jsonl of {\"text\"}, {\"messages\"}, {\"prompt\", \"completion\"} or "
          "{\"tokens\"}, packed one after the other"
      )
      ->required()
      ->type_name("FILE");
  engine::PerplexityOptions& options = args->options;
  command
      .add_option(
          "--context",
          options.context,
          "Tokens of a window; at most the model's context and one more [512]"
      )
      ->check(between(2, 1 << 24))
      ->type_name("INT");
  command
      .add_option(
          "--stride",
          options.stride,
          "Tokens by which windows move, each token scored in the first one that has it; 0: the "
          "whole window [0]"
      )
      ->check(between(0, 1 << 24))
      ->type_name("INT");
  command.add_option("--batch", options.batch, "Windows that run in one batch [8]")
      ->check(between(1, 1024))
      ->type_name("INT");
  add_adapter_args(command, args->adapter, args->adapter_scale);
  add_kv_bits(command, options.kv_bits);
  command.add_flag("--json", args->json, "Print one JSON object");
  command.callback([args, &action] { action = [args] { return run_perplexity(*args); }; });
}

}  // namespace saker::cli
