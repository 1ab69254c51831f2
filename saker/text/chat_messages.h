// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts messages from the form of OpenAI's API to the form that one template takes. Anything
// that the template takes already stays unchanged. Otherwise:
//   - Arguments of calls given as JSON text become objects, or texts if the template wants these;
//     arguments that are no JSON object are kept whole.
//   - Parts of text are joined; texts become parts if the template takes nothing else.
//   - Null content becomes an empty text; other keys without a value, and empty lists of calls,
//     are removed.
//   - `developer` becomes `system`. Several first system messages are joined, or go before the
//     first question, if the template knows no other place for them.
//   - `function_call` and the role `function` become tool calls and tool results.
//   - Ids of calls and names of results are filled in, and ids shortened, if the template needs it.
//   - Reasoning under any of its three names is copied to the names that templates read.

#include "saker/base/json/json.h"
#include "saker/text/template_traits.h"

namespace saker::text {

// Throws kInvalidArgument unless `messages` is a list of at least one object. Throws kUnsupported
// for parts that are not text if the template does not take them.
Json fit_messages(const Json& messages, const TemplateTraits& traits);

// Throws kUnsupported for content that is neither text nor reasoning, such as an image.
void require_text_only(const Json& messages);

}  // namespace saker::text
