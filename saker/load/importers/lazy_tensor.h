// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tensors of MLX's formats that are made, some rows at a time, from what another program's file
// holds; and a whole model of them.

#include "saker/base/json.h"
#include "saker/load/model_writer.h"
#include "saker/load/safetensors.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace saker::load::importers {

// One tensor, or weight, scales and biases of a module: each is cut into `rows` parts of one size,
// along its first axes.
struct LazyTensor {
  std::vector<PlannedTensor> outputs;
  std::int64_t rows = 1;
  // Writes rows [first, first + count) of output i to to[i], unless that is null, as it may be
  // where there are several. Safe to call from several threads.
  std::function<void(std::int64_t first, std::int64_t count, std::span<std::byte* const> to)> make;
  std::optional<Tensor> same = {};  // The file's own, where nothing is made.
  std::function<void()> release;    // Gives the file's pages back; may be empty.

  // Bytes of a row of output i.
  std::size_t row_bytes(std::size_t output) const;
};

struct ImportedModel {
  Json config;  // As our own and mlx-lm's models have it.
  std::vector<LazyTensor> tensors;
  // The folder that has what a model folder has beside configuration and weights; empty: `files`.
  std::filesystem::path folder;
  // Texts of such files, by name.
  std::map<std::string, std::string> files;
  std::vector<std::string> notes;  // One line each: what isn't exactly what the file held.
};

// Of `model`, in order.
std::vector<PlannedTensor> all_outputs(const ImportedModel& model);

// Makes all tensors on all threads of the kernels' pool; a slice for each thread is in memory.
// `progress` of bytes, from any thread, one at a time; what it throws ends the work.
void write_tensors(
    const ImportedModel& model,
    ModelWriter& writer,
    const std::function<void(std::int64_t done, std::int64_t total)>& progress
);

// All tensors: views of the file where nothing is made, else in memory.
TensorMap make_tensors(const ImportedModel& model);

}  // namespace saker::load::importers
