// SPDX-License-Identifier: Apache-2.0
#pragma once

// Random sequences and the ways to run them through attend(): whole, in parts, beside others.

#include "saker/kernels/ops/attend.h"

#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/saved_machine.h"
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace saker::kernels {

// One sequence of `rows` rows from position 0 and how its layer attends.
struct AttendCase {
  int kv_heads = 1;
  int group = 1;
  int head_dim = 16;
  int value_head_dim = 16;
  mx::Dtype dtype = mx::bfloat16;
  int bits = 16;
  AttendOptions options;
  int cache_window = 0;
  int keep = 0;
  int rows = 1;
  std::uint64_t seed = 0;
  bool values_in_keys = false;   // The values are the keys' first elements,
  bool stores_them_once = true;  // and a store knows that.

  KvShape shape() const {
    return {kv_heads, head_dim, value_head_dim, dtype, bits, values_in_keys && stores_them_once};
  }
};

// Restores the instruction set and the threads.
class AttendTest : public testing::Test {
  SavedMachine saved_;
};

// By rapidcheck, inside of a property: a case of fewer than `max_rows` rows; an instruction set and
// a number of threads.
AttendCase random_case(int max_rows);
void use_random_machine();

struct AttendInputs {
  mx::array q;
  mx::array k;
  mx::array v;
};

// One for each query head, as large as scores.
mx::array random_sinks(const AttendCase& c);

AttendInputs random_inputs(const AttendCase& c);

// Rows [first, first + count) of each input.
AttendInputs part_of(const AttendInputs& inputs, int first, int count);
// The rows of several inputs after each other.
AttendInputs joined(const std::vector<AttendInputs>& parts);

AttendSpan span_of(
    const AttendCase& c,
    int first_row,
    int count,
    std::int64_t position,
    std::shared_ptr<KvStore> store
);

std::vector<float> floats_of(const mx::array& x);

// All rows, in passes of the given sizes (the last size repeats) -> [rows, H, D_v]. Old rows are
// dropped where the cache has a limit.
std::vector<float> run_in_parts(
    const AttendCase& c, const std::vector<int>& sizes, KvLayout layout = KvLayout::kPaged
);

// Of the instruction set in use over the case's pages.
Rounding rounding(const AttendCase& c);
// See attend_limit.
double limit(const AttendCase& c);

// Keys or values [n, H_kv, D] of positions from 0 on as a store of the case gives them back, in
// float32: rounded to its dtype, and from the second page on what MLX's codes of that stand for, of
// keys less their page's offsets. Short groups are filled up, which changes no range.
mx::array stored_keys(const AttendCase& c, const mx::array& rows);
mx::array stored_values(const AttendCase& c, const mx::array& rows);

// The row at `position` by attend_reference, from stored rows, the scaled query rounded as the
// set does it. `span_end`: of the row's span, where rows see later ones.
std::vector<float> reference_row(
    const AttendCase& c,
    const AttendInputs& inputs,
    int position,
    Rounding rounding,
    int span_end = 0
);

}  // namespace saker::kernels
