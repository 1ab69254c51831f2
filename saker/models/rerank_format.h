// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a decoder is asked if a document answers a query. The prompt is the prefix, then
// "<Instruct>: ...\n<Query>: ...\n<Document>: ...", then the suffix, each encoded by itself. The
// next token is `yes` or `no`.

#include <string_view>

namespace saker::models {

struct RerankFormat {
  std::string_view prefix;
  std::string_view suffix;
  std::string_view instruction;  // If a request has none.
  std::string_view yes;          // Tokens as the vocabulary writes them.
  std::string_view no;
};

}  // namespace saker::models
