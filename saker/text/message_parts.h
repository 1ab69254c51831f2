// SPDX-License-Identifier: Apache-2.0
#pragma once

// The content of a chat message: a text, or a list of parts of text, reasoning, images and others.

#include "saker/base/json.h"
#include "saker/text/template_traits.h"

#include <optional>
#include <string>

namespace saker::text {

// What a part says: {"type": "text", "text"}, the same of OpenAI's other interfaces, a refusal, or
// a bare text. None for other kinds of parts.
std::optional<std::string> text_of_part(const Json& part);

// The thoughts of a part {"type": "thinking", "thinking"}; none for other parts.
std::optional<std::string> thoughts_of_part(const Json& part);

struct MessageContent {
  Json content;
  std::string thoughts;  // Of parts that the template doesn't take.
};

// Content in the form that the template takes in this role. What is neither a text nor a list of
// parts stays as it is. Throws kUnsupported for parts that are no text and that the template does
// not take.
MessageContent fit_content(const Json& content, Role role, const TemplateTraits& traits);

}  // namespace saker::text
