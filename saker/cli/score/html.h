// SPDX-License-Identifier: Apache-2.0
#pragma once

// Scored texts as one HTML page that colours each token by its delta, on one scale for all views of
// a text, with the numbers in tables that need no mouse: a self-contained file without scripts. All
// text is escaped.

#include "saker/engine/differences.h"
#include "saker/engine/request.h"

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::cli {

struct PageToken {
  std::string text;
  bool special = false;  // As the tokenizer marks it: BOS and the like.
};

// A line of what the page is about: "model", "org/name".
struct PageFact {
  std::string name;
  std::string value;
};

class ScorePage {
 public:
  // `facts`: the model, adapters, options and the date, in this order on the page.
  explicit ScorePage(std::vector<PageFact> facts) : facts_(std::move(facts)) {}

  // Adds a text. `title`: its record's id; empty where there is one text only. `tokens`: those of
  // the result; without a tokenizer fewer, which then have no text.
  void add(
      std::string_view title,
      const engine::ScoreResult& result,
      const engine::Differences& differences,
      std::span<const PageToken> tokens
  );
  // A text that could not be scored.
  void add_failure(std::string_view title, std::string_view reason);

  bool empty() const { return entries_.empty(); }

  // The whole page; with several texts it begins with a table of contents.
  std::string html() const;

 private:
  struct Entry {
    std::string title;
    std::string summary;  // HTML
    std::string body;     // HTML
  };

  std::vector<PageFact> facts_;
  std::vector<Entry> entries_;
};

// Text as HTML shows it; bytes that are no UTF-8 become U+FFFD.
std::string escape_html(std::string_view text);

}  // namespace saker::cli
