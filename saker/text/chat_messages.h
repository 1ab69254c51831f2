// SPDX-License-Identifier: Apache-2.0
#pragma once

// Messages as clients of OpenAI's API keep them, in the form that one template takes. What a
// template takes as it is stays as it is. Otherwise:
// - arguments of calls that are JSON in a text become objects, or texts where the template wants
//   these; arguments that are no JSON object are kept whole;
// - parts of text are joined; texts become parts where the template takes nothing else;
// - null content is an empty text; other keys without a value, and empty lists of calls, go;
// - `developer` is `system`; several first system messages are joined, or go before the first
//   question, where the template knows no other place;
// - `function_call` and the role `function` become calls and results of tools;
// - ids of calls and names of results are filled in, ids shortened, where the template fails else;
// - reasoning goes by three names, of which templates read one.

#include "saker/base/json.h"
#include "saker/text/template_traits.h"

namespace saker::text {

// Throws kInvalidArgument unless `messages` is a list of at least one object, kUnsupported for
// parts that are no text and that the template does not take.
Json fit_messages(const Json& messages, const TemplateTraits& traits);

// Throws kUnsupported for content that is neither text nor reasoning, such as an image.
void require_text_only(const Json& messages);

}  // namespace saker::text
