// SPDX-License-Identifier: Apache-2.0
#pragma once

// The grammar of an answer with tool calls, in llguidance's dialect of Lark (text/constraint.h).

#include "saker/text/output/output_format.h"
#include "saker/text/output/tool.h"
#include "saker/text/tokenizer.h"

#include <string>
#include <vector>

namespace saker::text {

struct CallGrammarOptions {
  bool is_forced = true;  // Calls and nothing else. Otherwise text, and calls wherever they begin.
  bool is_parallel = true;  // Several calls; otherwise one.
  // Arguments fit the tools' schemas; those of tools that are not strict, as far as they can be
  // read. Otherwise they are any object.
  bool reads_schemas = true;
};

// Calls of `tools` as `format` writes them. The tokenizer tells which markers are special tokens.
// Throws kUnsupported for a format without calls. REQUIRES: there is a tool.
std::string call_grammar(
    const OutputFormat& format,
    const std::vector<Tool>& tools,
    const Tokenizer& tokenizer,
    const CallGrammarOptions& options = {}
);

}  // namespace saker::text
