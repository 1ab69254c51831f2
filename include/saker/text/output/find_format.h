// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds out how a model writes its answers (docs/adr/0064-the-output-parser.md).

#include "saker/base/json/json.h"
#include "saker/text/chat_template.h"
#include "saker/text/output/output_format.h"
#include "saker/text/tokenizer.h"

#include <optional>
#include <string_view>

namespace saker::text {

// The first of these that tells: `response_template` of tokenizer_config.json; the known format in
// which the template shows calls; a form that follows from how it shows them; words of the template
// or the vocabulary. Otherwise the plain format. `chat` and `tokenizer` may be null. Takes some
// milliseconds.
OutputFormat find_output_format(
    const ChatTemplate* chat, const Tokenizer* tokenizer, const Json& response_template
);

// The format that a tokenizer's `response_template` describes, as far as a known machine reads it.
// None, with a line in the log, for versions other than 1 and for what no machine reads.
std::optional<OutputFormat> format_of_response_template(const Json& response_template);

// The format of a template that shows calls; none if it shows none, or in no form that can be read.
std::optional<OutputFormat> format_of_template(const ChatTemplate& chat);

// The format whose words the template's text or the vocabulary has.
const OutputFormat* format_of_words(std::string_view source, const Tokenizer* tokenizer);

}  // namespace saker::text
