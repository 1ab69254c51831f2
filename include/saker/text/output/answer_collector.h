// SPDX-License-Identifier: Apache-2.0
#pragma once

// Joins the events of an answer to its parts.

#include "saker/text/answer_parts.h"
#include "saker/text/output_event.h"

#include <utility>

namespace saker::text {

// Collects events. One thread at a time.
class AnswerCollector {
 public:
  // Adds the next event of the answer.
  void add(const OutputEvent& event);

  // The parts so far; calls that are not closed are left out.
  const AnswerParts& parts() const { return parts_; }

  // Moves the parts out. REQUIRES: no add() afterwards.
  AnswerParts take() { return std::move(parts_); }

 private:
  AnswerParts parts_;
  ToolCall open_;
};

}  // namespace saker::text
