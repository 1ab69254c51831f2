// SPDX-License-Identifier: Apache-2.0
#pragma once

// The values that a conversion's step reads: a run of one part's elements, in blocks of floats.
// Lazy tensors are made as they are needed. Threading: one thread each.

#include "saker/kernels/quantize/quantize_loops.h"
#include "saker/load/convert/mlx_weights.h"
#include "saker/load/convert/tensor_steps.h"
#include "saker/load/importers/placeholder_tensors.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace saker::load {

// Elements [begin, begin + count) of one part of a step.
struct StepRun {
  const TensorStep* step = nullptr;
  std::size_t part = 0;
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

class StepValues {
 public:
  // `made` knows lazy tensors; null: there are none. REQUIRES: both outlive it.
  StepValues(const StepRun& run, const importers::PlaceholderTensors* made)
      : run_(run), made_(made) {}

  // The bytes of one of the step's tensors from `offset` of the part on, within the run.
  const std::byte* bytes_at(const ModelTensor& tensor, std::size_t offset);

  // Elements [first, first + count) of the run, widened. Codes are decoded and rounded to `dtype`;
  // floats are as they are, without the tensor's offset. REQUIRES: with codes, `first` and `count`
  // are multiples of their groups.
  void read(std::size_t first, std::size_t count, DType dtype, float* to);

 private:
  struct MadeRows {
    importers::PlaceholderTensors::Source source;
    std::size_t first = 0;
    std::vector<std::byte> bytes;
  };

  // As read(), of a tensor whose bytes are those of its transpose.
  void read_turned(std::size_t first, std::size_t count, float* to) const;
  const MadeRows& rows_of(const importers::PlaceholderTensors::Source& source);
  void make(const importers::PlaceholderTensors::Source& source);

  StepRun run_;
  const importers::PlaceholderTensors* made_;
  std::vector<MadeRows> made_rows_;  // One tensor each, three at most.
};

// Bytes of `count` codes, and of their scales.
std::size_t code_bytes(const kernels::WeightFormat& format, std::size_t count);
std::size_t scale_bytes(const kernels::WeightFormat& format, DType dtype, std::size_t count);

}  // namespace saker::load
