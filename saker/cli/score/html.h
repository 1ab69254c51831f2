// SPDX-License-Identifier: Apache-2.0
#pragma once

// Scored texts as one self-contained HTML page without scripts. It colours each token by its delta,
// on one scale for all views of a text; tables with all numbers need no mouse. All text is escaped.

#include "saker/engine/measures/differences.h"
#include "saker/engine/request.h"

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::cli {

struct PageToken {
  std::string text;
  bool special = false;  // Marked special by the tokenizer: BOS and the like.
};

// A line about the page's content: "model", "org/name".
struct PageFact {
  std::string name;
  std::string value;
};

class ScorePage {
 public:
  // `facts` are the model, adapters, options and the date, in the page's order.
  explicit ScorePage(std::vector<PageFact> facts) : facts_(std::move(facts)) {}

  // Adds a text. `title` is its record's id, empty for a single text. `tokens` are the result's;
  // without a tokenizer they are fewer, and the rest are shown without text.
  void add(
      std::string_view title,
      const engine::ScoreResult& result,
      const engine::Differences& differences,
      std::span<const PageToken> tokens
  );
  // Adds a text that could not be scored.
  void add_failure(std::string_view title, std::string_view reason);

  bool empty() const { return entries_.empty(); }

  // The whole page; several texts get a table of contents.
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

// Escapes text for HTML; invalid UTF-8 becomes U+FFFD.
std::string escape_html(std::string_view text);

}  // namespace saker::cli
