// SPDX-License-Identifier: Apache-2.0
#pragma once

// Prompts that end in the midst of their last message, so that an answer continues it. Templates
// have no word for that: the message is rendered with a mark at its end, and the prompt is cut
// there, before all that the template writes after a message.

#include "saker/base/json/json.h"
#include "saker/text/begun.h"

#include <string>

namespace saker::text {

// The part of the last message that is continued: its content, or its reasoning if it has no
// content. Throws kInvalidArgument unless it is an assistant's with a text and without calls.
Begun continued_part(const Json& messages);

// The messages with a mark behind that part. Throws as above.
Json with_mark(const Json& messages);

// The prompt up to the mark. Throws kUnsupported if the template shows the mark elsewhere or not
// once.
std::string cut_at_mark(std::string prompt);

}  // namespace saker::text
