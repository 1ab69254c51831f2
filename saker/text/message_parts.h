// SPDX-License-Identifier: Apache-2.0
#pragma once

// The content of a chat message: a text, or a list of parts of text, reasoning, images and others.

#include "saker/base/json/json.h"
#include "saker/text/template_traits.h"

#include <optional>
#include <string>

namespace saker::text {

// The text of a part: {"type": "text", "text"}, its equivalents in OpenAI's other interfaces, a
// refusal, or a bare text. Empty for other kinds of parts.
std::optional<std::string> text_of_part(const Json& part);

// The thoughts of a part {"type": "thinking", "thinking"}; empty for other parts.
std::optional<std::string> thoughts_of_part(const Json& part);

struct MessageContent {
  Json content;
  std::string thoughts;  // From parts that the template does not take.
};

// Content in the form that the template takes in this role. Anything but a text or a list of parts
// stays. Throws kUnsupported for parts that are not text if the template does not take them.
MessageContent fit_content(const Json& content, Role role, const TemplateTraits& traits);

}  // namespace saker::text
