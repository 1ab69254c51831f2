// SPDX-License-Identifier: Apache-2.0
#pragma once

// Values whose objects and lists are tags as well (MiniMax M3): <a>1</a><b><item>x</item></b>.

#include "saker/text/output/argument_types.h"

#include <string>
#include <string_view>

namespace saker::text {

// The JSON of a value. `prefix` precedes each tag. A text without tags has one of `types`; texts
// within tags are typed by how they look. Nesting is bounded.
std::string read_nested_tags(
    std::string_view text, std::string_view prefix, const ArgumentTypes& types
);

}  // namespace saker::text
