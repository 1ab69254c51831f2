// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks lines of an earlier run's output, from which `score --resume` continues. A line has to
// answer a record of the input and to suit the present options. Lines may be anything; lines that
// are not ours answer nothing. Pure functions.

#include "saker/base/json/json.h"
#include "saker/engine/prompts.h"
#include "saker/engine/request.h"

#include <cstdint>
#include <functional>

namespace saker::cli {

// The input's record that a line should answer.
struct AskedRecord {
  Json id = Json(Json::value_t::discarded);  // Discarded: it has none.
  int line = 0;
  // Returns its tokens; called only if the line holds an answer. May throw Error if it has none.
  std::function<engine::ScorePrompt()> prompt = {};
};

// True if the line says that its record failed.
bool is_failure(const Json& kept);

// True if the line can be the record's answer. For a failed record it has only id and line number.
bool answers(const Json& kept, const AskedRecord& record);

enum class WithDifferences : std::uint8_t { kNo, kYes };

// True if an answer has everything that these options ask for. Failures, and answers to an empty
// text, always fit. REQUIRES: it `answers` a record.
bool fits_options(const Json& kept, const engine::ScoreRequest& options, WithDifferences diff);

}  // namespace saker::cli
