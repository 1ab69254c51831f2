// SPDX-License-Identifier: Apache-2.0
#pragma once

// Validators of option values; their messages give the value and the expectation.

#include <CLI/CLI.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace saker::cli {

// A whole number from `low` to `high`.
CLI::Validator between(std::int64_t low, std::int64_t high);

// A whole number of at least `low`.
CLI::Validator at_least(std::int64_t low);

// One of these words.
CLI::Validator one_of(std::vector<std::string> words);

// For prompts and the like that can be given in several ways: throws CLI::ParseError unless exactly
// one of the options is given. `what`: "a prompt".
void require_one(std::string_view what, std::initializer_list<const CLI::Option*> options);

}  // namespace saker::cli
