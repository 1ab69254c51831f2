// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tests that choose the instruction set and the threads of the kernels, and give both back.

#include "saker/kernels/gpu/backend.h"

#include <gtest/gtest.h>

#include <string>

namespace saker::kernels {

// What it finds when it is made is selected again at its end.
class SavedMachine {
 public:
  SavedMachine() = default;
  SavedMachine(const SavedMachine&) = delete;
  SavedMachine& operator=(const SavedMachine&) = delete;

  ~SavedMachine() {
    select_instruction_set(set_);
    set_threads(threads_);
  }

 private:
  std::string set_{instruction_set()};
  int threads_ = threads();
};

// Runs each test with the instruction set that is its parameter.
class InstructionSetTest : public testing::TestWithParam<std::string> {
 public:
  InstructionSetTest() { select_instruction_set(GetParam()); }

 private:
  SavedMachine saved_;
};

}  // namespace saker::kernels
