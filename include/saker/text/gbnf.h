// SPDX-License-Identifier: Apache-2.0
#pragma once

// Grammars in GBNF, the form of llama.cpp, as llguidance's dialect of Lark.

#include <string>
#include <string_view>

namespace saker::text {

// True if the text has a rule of GBNF's: `name ::= …`.
bool is_gbnf(std::string_view grammar);

// Returns the grammar in Lark; the rule `root` becomes `start`. Throws kInvalidArgument, with `what`
// and the line in front, for what it cannot read, such as tokens by id.
std::string lark_of_gbnf(std::string_view grammar, std::string_view what);

}  // namespace saker::text
