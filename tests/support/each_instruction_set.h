// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a check with each instruction set that this processor has in use, and brings the first back.

#include "saker/base/instruction_set.h"

#include <string>

namespace saker::testing {

template <typename Check>
void for_each_instruction_set(const Check& check) {
  const std::string before(name_of(instruction_set()));
  for (const InstructionSet set : runnable_sets()) {
    select_instruction_set(name_of(set));
    check(set);
  }
  select_instruction_set(before);
}

}  // namespace saker::testing
