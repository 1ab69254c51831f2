// SPDX-License-Identifier: Apache-2.0
#pragma once

// Texts between Python and UTF-8. With the GIL.

#include "saker/engine/request.h"

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>
#include <vector>

namespace saker::python {

// A str; what is not UTF-8 becomes U+FFFD.
nanobind::str as_text(std::string_view text);

// The other way. Throws kInvalidArgument naming `what` it is for a lone surrogate.
std::string utf8_of(const nanobind::str& text, std::string_view what);
std::vector<std::string> utf8_of(const std::vector<nanobind::str>& texts, std::string_view what);

// The value of a JSON text, parsed while others have the GIL. Throws as parse_json, too.
Json json_of(const nanobind::str& text, std::string_view what);

}  // namespace saker::python
