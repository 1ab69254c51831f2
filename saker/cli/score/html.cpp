// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/score/html.h"

#include "saker/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::cli {
namespace {

constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>What an adapter changes: saker score</title>
<style>
:root { color-scheme: light dark; --up: 30, 110, 235; --down: 225, 85, 25; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; white-space: nowrap; }
th, td { text-align: right; padding: .2rem .8rem; border-bottom: 1px solid #8884; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
.note { font-size: .85rem; opacity: .75; }
.text { font: 15px/1.9 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
.text span, .legend span { border-radius: 3px; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.text span { padding: .1em 0; }
.text span[title]:hover { outline: 2px solid; }
.text .unscored { opacity: .5; }
.text .special { border: 1px dashed #8888; font-size: .85em; }
.mark { opacity: .45; }
.legend span { padding: .1em .6em; }
.facts td:last-child { white-space: normal; overflow-wrap: anywhere; text-align: left; }
summary { cursor: pointer; } section { border-top: 1px solid #8884; margin-top: 2rem; }
svg { max-width: 100%; } svg text { fill: currentColor; font-size: 12px; }
</style>
</head>
<body>
<h1>Token by token</h1>
)";

constexpr const char* kFoot = "</body>\n</html>\n";

// The 95th percentile of the deltas' sizes, and at least kLeast.
double large_delta(const score::TokenLogprobs& deltas) {
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

// The delta that gets full colour in all views: nearly the largest of the view that changes most.
// So one outlier does not pale the others, and noise stays pale beside a change.
double full_colour(const engine::Differences& differences) {
  double full = 0.0;
  for (const engine::ViewDifference& view : differences.views) {
    full = std::max(full, large_delta(view.deltas));
  }
  return full;
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

// The picture of a control character: U+2400 and following.
std::string control_picture(unsigned char c) {
  constexpr unsigned char kDelete = 0x7f;
  constexpr unsigned kLastByte = 0x80;
  return {'\xe2', '\x90', static_cast<char>(kLastByte + (c == kDelete ? 0x21U : c))};
}

std::string mark(std::string_view text) {
  return fmt::format("<span class=\"mark\">{}</span>", text);
}

// Marks invisible parts: line breaks, control characters, and tokens whose bytes only later ones
// complete.
std::string visible(std::string_view piece) {
  if (piece.empty()) {
    return mark("\u00b7");
  }
  std::string text;
  for (const char c : escape_html(piece)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      text += mark("\u21b5") + c;
    } else if ((byte < ' ' && c != '\t') || byte == 0x7fU) {
      text += mark(control_picture(byte));
    } else {
      text += c;
    }
  }
  return text;
}

// Uses a real minus sign.
std::string minus(std::string text) {
  if (text.starts_with('-')) {
    text.replace(0, 1, "\u2212");
  }
  return text;
}

constexpr const char* kNoNumber = "\u2013";

std::string number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? minus(fmt::format("{:.4f}", *value)) : kNoNumber;
}

std::string change(double value) {
  return std::isfinite(value) ? minus(fmt::format("{:+.4f}", value)) : kNoNumber;
}

// Two views of the same tokens.
struct Pair {
  const engine::ScoreResult& result;
  const engine::ViewScores& reference;
  const engine::ViewScores& scores;
  const score::TokenLogprobs& deltas;
  double full;
};

void add_token(std::string& page, const Pair& pair, std::size_t index, const PageToken& token) {
  const auto& delta = pair.deltas[index];
  const std::string_view special = token.special ? "special" : "";
  if (!delta || !std::isfinite(*delta)) {
    page += fmt::format("<span class=\"unscored {}\">{}</span>", special, visible(token.text));
    return;
  }
  fmt::format_to(
      std::back_inserter(page),
      "<span{} style=\"{}\" title=\"token {}&#10;{} {}&#10;{} {}&#10;\u0394 {}\">{}</span>",
      token.special ? " class=\"special\"" : "",
      colour(*delta, pair.full),
      pair.result.tokens[index],
      escape_html(pair.reference.view),
      number(pair.reference.logprobs[index]),
      escape_html(pair.scores.view),
      number(pair.scores.logprobs[index]),
      change(*delta),
      visible(token.text)
  );
}

void add_table(std::string& page, const engine::Differences& all) {
  page +=
      "<div class=\"wide\"><table><tr><th>view</th><th>tokens</th><th>sum \u0394</th><th>mean "
      "\u0394</th>"
      "<th>95 % interval</th><th>mean |\u0394|</th><th>z</th><th>KL next</th>"
      "<th>JS next</th></tr>\n";
  for (const auto& view : all.views) {
    fmt::format_to(
        std::back_inserter(page),
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{} to {}</td><td>{}</td>"
        "<td>{}</td><td>{}</td><td>{}</td></tr>\n",
        escape_html(view.view),
        view.total.left_out == 0
            ? std::to_string(view.total.count)
            : fmt::format("{} ({} not finite)", view.total.count, view.total.left_out),
        change(view.total.sum),
        change(view.total.mean),
        change(view.mean_interval.low),
        change(view.mean_interval.high),
        number(view.mean_change),
        view.z ? minus(fmt::format("{:.1f}", *view.z)) : kNoNumber,
        number(view.next ? std::optional(view.next->kl) : std::nullopt),
        number(view.next ? std::optional(view.next->js) : std::nullopt)
    );
  }
  page +=
      "</table></div>\n<p class=\"note\">Sums and means in nats. The interval of the mean: by "
      "bootstrap over the "
      "tokens. z: how far mean |\u0394| lies above that of the null views, in their deviations. KL "
      "and JS: of the token after the text.</p>\n";
}

// Plots the divergence over the strengths, as a line through its points.
void add_ablation(std::string& page, const engine::Differences& all) {
  constexpr double kWidth = 480.0;
  constexpr double kHeight = 180.0;
  constexpr double kLeft = 60.0;
  constexpr double kBottom = 30.0;
  constexpr double kTop = 14.0;
  if (!all.ablation || all.points.empty()) {
    return;
  }
  double high = 1e-12;
  for (const engine::AblationPoint& point : all.points) {
    high = std::max(high, point.divergence);
  }
  const double low_x = std::min(all.points.front().strength, 0.0);
  const double span = std::max(all.points.back().strength - low_x, 1e-12);
  std::string line;
  std::string dots;
  for (const engine::AblationPoint& point : all.points) {
    const double x = kLeft + (point.strength - low_x) / span * (kWidth - kLeft - 20.0);
    const double y = kHeight - kBottom - point.divergence / high * (kHeight - kBottom - kTop);
    line += fmt::format("{}{:.1f},{:.1f}", line.empty() ? "" : " ", x, y);
    dots += fmt::format(
        "<circle cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"3.5\" fill=\"rgb(var(--up))\"/><text "
        "x=\"{0:.1f}\" y=\"{2:.1f}\" text-anchor=\"middle\">{3:g}</text>",
        x,
        y,
        kHeight - 10.0,
        point.strength
    );
  }
  fmt::format_to(
      std::back_inserter(page),
      "<h3>Over strengths</h3>\n<svg viewBox=\"0 0 {0} {1}\" width=\"{0}\" role=\"img\" "
      "aria-label=\"JS divergence of the next token over the adapter's strength\">"
      "<line x1=\"{2}\" y1=\"{3}\" x2=\"{0}\" y2=\"{3}\" stroke=\"currentColor\"/>"
      "<text x=\"0\" y=\"{4}\">JS {5:.3g}</text><text x=\"0\" y=\"{3}\">0</text>"
      "<polyline points=\"{6}\" fill=\"none\" stroke=\"rgb(var(--up))\" stroke-width=\"2\"/>{7}"
      "</svg>\n<p>R\u00b2 {8:.3f}, 90 % reached at {9}, overshoot {10:.3f}.</p>\n",
      kWidth,
      kHeight,
      kLeft,
      kHeight - kBottom,
      kTop + 4.0,
      high,
      line,
      dots,
      all.ablation->linearity,
      number(all.ablation->saturation),
      all.ablation->overshoot
  );
}

// Adds the numbers of all tokens and views, for keyboards, touch and screen readers.
void add_numbers(
    std::string& page,
    const engine::ScoreResult& result,
    const engine::Differences& all,
    std::span<const PageToken> tokens
) {
  page += fmt::format(
      "<details><summary>Numbers of each token</summary><div class=\"wide\"><table><tr><th>token"
      "</th><th>id</th><th>{}</th>",
      escape_html(all.reference)
  );
  for (const auto& view : all.views) {
    page += fmt::format("<th>\u0394 {}</th>", escape_html(view.view));
  }
  page += "</tr>\n";
  for (std::size_t i = 0; i < result.tokens.size(); ++i) {
    page += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}</td>",
        i < tokens.size() ? visible(tokens[i].text) : std::string(),
        result.tokens[i],
        number(result.views.front().logprobs[i])
    );
    for (const auto& view : all.views) {
      page += fmt::format(
          "<td>{}</td>", view.deltas[i] ? change(*view.deltas[i]) : std::string(kNoNumber)
      );
    }
    page += "</tr>\n";
  }
  page += "</table></div></details>\n";
}

std::string facts_html(const std::vector<PageFact>& facts) {
  std::string page = "<table class=\"facts\">\n";
  for (const PageFact& fact : facts) {
    page += fmt::format(
        "<tr><td>{}</td><td>{}</td></tr>\n", escape_html(fact.name), escape_html(fact.value)
    );
  }
  return page + "</table>\n";
}

std::string legend(const engine::Differences& differences, double full) {
  return fmt::format(
      "<p>\u0394 is a token's log-probability (nats) minus that of <b>{}</b>: "
      "<span class=\"legend\"><span style=\"{}\">more probable</span> "
      "<span style=\"{}\">less probable</span></span>, in full colour from {:.2f} nats on. Point "
      "at a token for its numbers, or open the table below the texts. Pale text is not "
      "scored.</p>\n",
      escape_html(differences.reference),
      colour(1.0, 1.0),
      colour(-1.0, 1.0),
      full
  );
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

void ScorePage::add(
    std::string_view title,
    const engine::ScoreResult& result,
    const engine::Differences& differences,
    std::span<const PageToken> tokens
) {
  const double full = full_colour(differences);
  std::string body = legend(differences, full);
  add_table(body, differences);
  add_ablation(body, differences);
  for (std::size_t v = 0; v < differences.views.size(); ++v) {
    const engine::ViewDifference& view = differences.views[v];
    const Pair pair{result, result.views.front(), result.views[v + 1], view.deltas, full};
    fmt::format_to(
        std::back_inserter(body),
        "<h2>{} \u2212 {}</h2>\n<div class=\"text\">",
        escape_html(view.view),
        escape_html(differences.reference)
    );
    for (std::size_t i = 0; i < result.tokens.size(); ++i) {
      add_token(body, pair, i, i < tokens.size() ? tokens[i] : PageToken{});
    }
    body += "</div>\n";
  }
  add_numbers(body, result, differences, tokens);
  std::string summary = fmt::format("{} tokens", result.tokens.size());
  for (const engine::ViewDifference& view : differences.views) {
    summary +=
        fmt::format(", mean \u0394 of {} {}", escape_html(view.view), change(view.total.mean));
  }
  entries_.push_back({std::string(title), std::move(summary), std::move(body)});
}

void ScorePage::add_failure(std::string_view title, std::string_view reason) {
  entries_.push_back(
      {std::string(title), "failed", fmt::format("<p>Not scored: {}</p>\n", escape_html(reason))}
  );
}

std::string ScorePage::html() const {
  std::string page(kHead);
  page += facts_html(facts_);
  const bool has_contents = entries_.size() > 1;
  if (has_contents) {
    page += "<h2>Contents</h2>\n<ol>\n";
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      page += fmt::format(
          "<li><a href=\"#text{}\">{}</a>: {}</li>\n",
          i + 1,
          escape_html(entries_[i].title),
          entries_[i].summary
      );
    }
    page += "</ol>\n";
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    page += has_contents ? fmt::format(
                               "<section id=\"text{}\"><h2>{}</h2>\n{}</section>\n",
                               i + 1,
                               escape_html(entry.title),
                               entry.body
                           )
                         : entry.body;
  }
  return page + kFoot;
}

}  // namespace saker::cli
