// SPDX-License-Identifier: Apache-2.0
#pragma once

// Answers through the output parser, cut in several ways.

#include "saker/text/output/answer_collector.h"
#include "saker/text/output/output_parser.h"

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace saker::text {

std::vector<Tool> test_tools();

// Joined pieces of the same kind.
std::vector<OutputEvent> joined(const std::vector<OutputEvent>& events);

std::vector<OutputEvent> events_of(
    const OutputFormat& format,
    const std::vector<std::string>& pieces,
    const std::vector<Tool>& tools,
    AnswerEnd end,
    std::string_view prompt = ""
);

AnswerParts parse_pieces(
    const OutputFormat& format,
    const std::vector<std::string>& pieces,
    const std::vector<Tool>& tools,
    AnswerEnd end,
    std::string_view prompt = ""
);

// Whole, in pieces like tokens and byte by byte: expects equal events.
AnswerParts parse_all_ways(
    const OutputFormat& format,
    std::string_view text,
    const std::vector<Tool>& tools = test_tools(),
    std::string_view prompt = "",
    AnswerEnd end = AnswerEnd::kWhole
);

// Without the beginning of a character at the end.
std::string whole_characters(std::string text);

}  // namespace saker::text
