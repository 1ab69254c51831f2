// SPDX-License-Identifier: Apache-2.0
#pragma once

// Adapters and views of `score`: their options, and what the views differ by as table, JSON or HTML
// page.

#include "saker/cli/score/html.h"
#include "saker/engine/differences.h"
#include "saker/engine/engine.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace saker::cli {

struct ViewArgs {
  std::vector<std::string> adapters;  // [NAME=]DIR
  std::vector<std::string> keys;      // Empty: base, and ft with an adapter.
  bool diff = false;
  std::filesystem::path html;  // Empty: none.
};

// Adds --adapter, --views, --diff and --html.
void add_view_args(CLI::App& command, ViewArgs& args);

// Throws kInvalidArgument for names of adapters and keys that are no view's or are there twice, and
// for `diff` or `html` with a single view.
std::vector<engine::View> parse_views(const ViewArgs& args);

// The adapter that is all that is scored, at full strength; empty: there are other views.
std::filesystem::path only_adapter(const ViewArgs& args, const std::vector<engine::View>& views);

// The text of each token; without a tokenizer none.
std::vector<std::string> token_pieces(
    const std::vector<std::int32_t>& tokens, const text::Tokenizer* tokenizer
);

// The same with what is special, for a page.
std::vector<PageToken> page_tokens(
    const std::vector<std::int32_t>& tokens, const text::Tokenizer* tokenizer
);

enum class Sign : std::uint8_t { kOfNegative, kAlways };

// A number of a table, with four decimals; "-" where there is none.
std::string decimals(const std::optional<double>& value, Sign sign = Sign::kOfNegative);

// A line per token: the first view's log-probability and the others' deltas; then the measures.
std::string difference_table(
    const engine::ScoreResult& result,
    const engine::Differences& differences,
    const std::vector<std::string>& pieces
);

}  // namespace saker::cli
