// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/score/views.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/cli/options/model_args.h"
#include "saker/text/detokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <set>
#include <utility>

namespace saker::cli {
namespace {

engine::NamedAdapter parse_adapter(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || text.find('/') < equals) {
    return {.name = "", .dir = text};
  }
  return {.name = text.substr(0, equals), .dir = text.substr(equals + 1)};
}

void add_measures(std::string& table, const engine::Differences& all) {
  for (const auto& view : all.views) {
    fmt::format_to(
        std::back_inserter(table),
        "{} - {}: sum {}, mean {} ({} to {}), mean size {}",
        view.view,
        all.reference,
        decimals(view.total.sum, Sign::kAlways),
        decimals(view.total.mean, Sign::kAlways),
        decimals(view.mean_interval.low, Sign::kAlways),
        decimals(view.mean_interval.high, Sign::kAlways),
        decimals(view.mean_change)
    );
    if (view.total.left_out > 0) {
      table += fmt::format(", {} not finite and left out", view.total.left_out);
    }
    if (view.z) {
      table += fmt::format(", z {:+.2f}", *view.z);
    }
    if (view.next) {
      table += fmt::format("; next token: KL {:.4f}, JS {:.4f}", view.next->kl, view.next->js);
    }
    table += '\n';
  }
  if (all.ablation) {
    fmt::format_to(
        std::back_inserter(table),
        "over strengths: R^2 {:.3f}, 90 % reached at {}, overshoot {:.3f}\n",
        all.ablation->linearity,
        decimals(all.ablation->saturation),
        all.ablation->overshoot
    );
  }
}

}  // namespace

std::string decimals(const std::optional<double>& value, Sign sign) {
  if (!value) {
    return "-";
  }
  if (std::isnan(*value)) {
    return "nan";  // Whatever its sign bit.
  }
  return sign == Sign::kAlways ? fmt::format("{:+.4f}", *value) : fmt::format("{:.4f}", *value);
}

void add_view_args(CLI::App& command, ViewArgs& args) {
  command
      .add_option(
          "--adapter",
          args.adapters,
          "Folder of an adapter or its GGUF file, with a name for views; may be repeated"
      )
      ->type_name("[NAME=]DIR")
      ->allow_extra_args(false)
      ->group("Views");
  command
      .add_option(
          "--views",
          args.keys,
          "base, ft, a strength, NAME, NAME@STRENGTH or null:SEED[:INIT_SCALE[:RANK_SCALE]], "
          "separated by commas [base, with an adapter base,ft]"
      )
      ->type_name("LIST")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group("Views");
  command.add_flag("--diff", args.diff, "Compare the other views with the first, token by token")
      ->group("Views");
  command.add_option("--html", args.html, "Write a page that colours each token by what changed")
      ->type_name("FILE")
      ->group("Views");
}

std::vector<engine::View> parse_views(const ViewArgs& args) {
  std::vector<engine::NamedAdapter> adapters;
  adapters.reserve(args.adapters.size());
  for (const std::string& text : args.adapters) {
    adapters.push_back(parse_adapter(text));
  }
  engine::check_adapter_names(adapters);
  std::vector<std::string> keys = args.keys;
  if (keys.empty()) {
    keys.emplace_back("base");
    if (!adapters.empty()) {
      keys.emplace_back("ft");
    }
  }
  std::vector<engine::View> views;
  std::set<std::string> seen;
  for (const std::string& key : keys) {
    require(seen.insert(key).second, ErrorCode::kInvalidArgument, "view {:?} is there twice", key);
    views.push_back(engine::parse_view(key, adapters));
  }
  require(
      views.size() >= 2 || (!args.diff && args.html.empty()),
      ErrorCode::kInvalidArgument,
      "a comparison needs two views or more: give --adapter or --views"
  );
  return views;
}

std::filesystem::path only_adapter(const ViewArgs& args, const std::vector<engine::View>& views) {
  const engine::View& view = views.front();
  const bool alone = args.adapters.size() == 1 && views.size() == 1 && !view.null;
  return alone ? whole_adapter(view.adapter, view.strength) : std::filesystem::path();
}

std::vector<std::string> token_pieces(
    const std::vector<std::int32_t>& tokens, const text::Tokenizer* tokenizer
) {
  std::vector<std::string> pieces;
  if (tokenizer == nullptr || tokens.empty()) {
    return pieces;
  }
  pieces.reserve(tokens.size());
  text::Detokenizer detokenizer(*tokenizer, {.skip_special_tokens = false});
  for (const std::int32_t id : tokens) {
    pieces.push_back(detokenizer.add(id));
  }
  pieces.back() += detokenizer.finish();
  return pieces;
}

std::vector<PageToken> page_tokens(
    const std::vector<std::int32_t>& tokens, const text::Tokenizer* tokenizer
) {
  std::vector<PageToken> page;
  page.reserve(tokens.size());
  for (std::string& piece : token_pieces(tokens, tokenizer)) {
    page.push_back({std::move(piece), tokenizer->is_special(tokens[page.size()])});
  }
  return page;
}

std::string difference_table(
    const engine::ScoreResult& result,
    const engine::Differences& differences,
    const std::vector<std::string>& pieces
) {
  std::string table = fmt::format("{:>10}", differences.reference);
  for (const auto& view : differences.views) {
    table += fmt::format("  {:>10}", view.view);
  }
  table += "  token\n";
  for (std::size_t i = 0; i < result.tokens.size(); ++i) {
    table += fmt::format("{:>10}", decimals(result.views.front().logprobs[i]));
    for (const auto& view : differences.views) {
      table += fmt::format("  {:>10}", decimals(view.deltas[i], Sign::kAlways));
    }
    table += fmt::format("  {:>8}", result.tokens[i]);
    if (i < pieces.size()) {
      table += "  " + quote(pieces[i]);
    }
    table += '\n';
  }
  add_measures(table, differences);
  return table;
}

}  // namespace saker::cli
