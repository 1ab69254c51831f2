// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/score/html.h"

#include "saker/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace saker::cli {
namespace {

constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>saker score</title>
<style>
:root { color-scheme: light dark; --up: 22, 150, 90; --down: 214, 69, 65; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .2rem .8rem; border-bottom: 1px solid #8884; }
th:first-child, td:first-child { text-align: left; }
.text { font: 15px/1.9 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
.text span { border-radius: 3px; padding: .1em 0; }
.text .unscored { opacity: .5; }
.mark { opacity: .45; }
.legend span { padding: .1em .6em; border-radius: 3px; }
</style>
</head>
<body>
<h1>Token by token</h1>
)";

// The delta that gets the full colour: nearly the largest, so that one outlier does not pale the
// others.
double full_colour(const score::TokenLogprobs& deltas) {
  constexpr double kShare = 0.95;
  constexpr double kLeast = 0.1;
  std::vector<double> sizes;
  for (const auto& delta : deltas) {
    if (delta && std::isfinite(*delta)) {
      sizes.push_back(std::abs(*delta));
    }
  }
  if (sizes.empty()) {
    return kLeast;
  }
  std::sort(sizes.begin(), sizes.end());
  const auto place = static_cast<std::size_t>(kShare * static_cast<double>(sizes.size() - 1));
  return std::max(sizes[place], kLeast);
}

std::string colour(double delta, double full) {
  constexpr double kStrongest = 0.75;
  const double share = std::min(std::abs(delta) / full, 1.0) * kStrongest;
  return fmt::format("background:rgba(var({}),{:.2f})", delta >= 0.0 ? "--up" : "--down", share);
}

std::string valid_utf8(std::string_view text) {
  std::string result;
  for (auto bad = find_invalid_utf8(text); bad; bad = find_invalid_utf8(text)) {
    result.append(text.substr(0, *bad)).append("\uFFFD");
    text.remove_prefix(*bad + 1);
  }
  return result.append(text);
}

// Marks what would not be seen: line breaks, and tokens whose bytes only later ones complete.
std::string visible(std::string_view piece) {
  if (piece.empty()) {
    return "<span class=\"mark\">\u00b7</span>";
  }
  std::string text = escape_html(piece);
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at)) {
    constexpr std::string_view kBreak = "<span class=\"mark\">\u21b5</span>\n";
    text.replace(at, 1, kBreak);
    at += kBreak.size();
  }
  return text;
}

std::string number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? fmt::format("{:.4f}", *value) : "\u2013";
}

// Two views of the same tokens.
struct Pair {
  const engine::ScoreResult& result;
  const engine::ViewScores& reference;
  const engine::ViewScores& scores;
  const score::TokenLogprobs& deltas;
  double full;
};

void add_token(std::string& page, const Pair& pair, std::size_t index, std::string_view piece) {
  const auto& delta = pair.deltas[index];
  if (!delta || !std::isfinite(*delta)) {
    page += fmt::format("<span class=\"unscored\">{}</span>", visible(piece));
    return;
  }
  fmt::format_to(
      std::back_inserter(page),
      "<span style=\"{}\" title=\"token {}&#10;{} {}&#10;{} {}&#10;\u0394 {:+.4f}\">{}</span>",
      colour(*delta, pair.full),
      pair.result.tokens[index],
      escape_html(pair.reference.view),
      number(pair.reference.logprobs[index]),
      escape_html(pair.scores.view),
      number(pair.scores.logprobs[index]),
      *delta,
      visible(piece)
  );
}

void add_table(std::string& page, const engine::Differences& all) {
  page +=
      "<table><tr><th>view</th><th>tokens</th><th>sum \u0394</th><th>mean \u0394</th>"
      "<th>95 % of the mean</th><th>mean |\u0394|</th><th>z</th><th>KL next</th>"
      "<th>JS next</th></tr>\n";
  for (const auto& view : all.views) {
    fmt::format_to(
        std::back_inserter(page),
        "<tr><td>{}</td><td>{}</td><td>{:+.4f}</td><td>{:+.4f}</td><td>{:+.4f} to {:+.4f}</td>"
        "<td>{:.4f}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        escape_html(view.view),
        view.total.count,
        view.total.sum,
        view.total.mean,
        view.mean_interval.low,
        view.mean_interval.high,
        view.mean_change,
        number(view.z),
        number(view.next ? std::optional(view.next->kl) : std::nullopt),
        number(view.next ? std::optional(view.next->js) : std::nullopt)
    );
  }
  page += "</table>\n";
  if (all.ablation) {
    fmt::format_to(
        std::back_inserter(page),
        "<p>Over strengths: R\u00b2 {:.3f}, 90 % reached at {}, overshoot {:.3f}.</p>\n",
        all.ablation->linearity,
        number(all.ablation->saturation),
        all.ablation->overshoot
    );
  }
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string result;
  for (const char c : valid_utf8(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string score_html(
    const engine::ScoreResult& result,
    const engine::Differences& differences,
    std::span<const std::string> pieces
) {
  std::string page(kHead);
  fmt::format_to(
      std::back_inserter(page),
      "<p>\u0394 is a token's log-probability (nats) minus that of <b>{}</b>: "
      "<span class=\"legend\"><span style=\"{}\">more probable</span> "
      "<span style=\"{}\">less probable</span></span>, full colour at the 95th percentile of "
      "|\u0394|. Pale text is not scored.</p>\n",
      escape_html(differences.reference),
      colour(1.0, 1.0),
      colour(-1.0, 1.0)
  );
  add_table(page, differences);
  for (std::size_t v = 0; v < differences.views.size(); ++v) {
    const engine::ViewDifference& view = differences.views[v];
    const Pair pair{
        result, result.views.front(), result.views[v + 1], view.deltas, full_colour(view.deltas)
    };
    fmt::format_to(
        std::back_inserter(page),
        "<h2>{} \u2212 {}</h2>\n<div class=\"text\">",
        escape_html(view.view),
        escape_html(differences.reference)
    );
    for (std::size_t i = 0; i < result.tokens.size(); ++i) {
      add_token(page, pair, i, i < pieces.size() ? pieces[i] : std::string());
    }
    page += "</div>\n";
  }
  return page + "</body>\n</html>\n";
}

}  // namespace saker::cli
