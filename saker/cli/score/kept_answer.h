// SPDX-License-Identifier: Apache-2.0
#pragma once

// A line of an earlier run's output, which `score --resume` goes on from: whether it answers a
// record of the input, and whether it has what today's options ask for. Lines may be anything, and
// those that are none of ours answer nothing. Pure functions.

#include "saker/base/json.h"
#include "saker/engine/prompts.h"
#include "saker/engine/request.h"

#include <cstdint>
#include <functional>

namespace saker::cli {

// The record of the input that a line stands for.
struct AskedRecord {
  Json id = Json(Json::value_t::discarded);  // Discarded: it has none.
  int line = 0;
  // Its tokens; asked for only where the line holds an answer. May throw Error: it has none.
  std::function<engine::ScorePrompt()> prompt = {};
};

// Whether the line says that its record failed.
bool is_failure(const Json& kept);

// Whether the line can be the record's answer. Of a record that failed it has no more than id and
// place.
bool answers(const Json& kept, const AskedRecord& record);

enum class WithDifferences : std::uint8_t { kNo, kYes };

// Whether an answer has what these options ask for. Failures, and answers to an empty text, have
// nothing that tells. REQUIRES: it `answers` a record.
bool fits_options(const Json& kept, const engine::ScoreRequest& options, WithDifferences diff);

}  // namespace saker::cli
