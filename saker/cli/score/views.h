// SPDX-License-Identifier: Apache-2.0
#pragma once

// Adapters and views of `score`: their options, and the views' differences as table, JSON or HTML
// page.

#include "saker/cli/score/html.h"
#include "saker/engine/engine.h"
#include "saker/engine/measures/differences.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace saker::cli {

struct ViewArgs {
  std::vector<std::string> adapters;  // [NAME=]DIR
  std::vector<std::string> keys;      // Empty: base, and with an adapter ft.
  bool diff = false;
  std::filesystem::path html;  // Empty: none.
};

// Adds --adapter, --views, --diff and --html.
void add_view_args(CLI::App& command, ViewArgs& args);

// Throws kInvalidArgument for invalid or repeated names of adapters and views, and for `diff` or
// `html` with a single view.
std::vector<engine::View> parse_views(const ViewArgs& args);

// The adapter if it is the only view, at full strength; otherwise empty.
std::filesystem::path only_adapter(const ViewArgs& args, const std::vector<engine::View>& views);

// The text of each token; empty without a tokenizer.
std::vector<std::string> token_pieces(
    const std::vector<std::int32_t>& tokens, const text::Tokenizer* tokenizer
);

// As above, with the special flags, for a page.
std::vector<PageToken> page_tokens(
    const std::vector<std::int32_t>& tokens, const text::Tokenizer* tokenizer
);

enum class Sign : std::uint8_t { kOfNegative, kAlways };

// A table's number, with four decimals; "-" if there is none.
std::string decimals(const std::optional<double>& value, Sign sign = Sign::kOfNegative);

// A line per token with the first view's log-probability and the others' deltas, then the measures.
std::string difference_table(
    const engine::ScoreResult& result,
    const engine::Differences& differences,
    const std::vector<std::string>& pieces
);

}  // namespace saker::cli
