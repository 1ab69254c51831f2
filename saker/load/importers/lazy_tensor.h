// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lazy tensors: tensors in MLX's formats that are converted on demand, some rows at a time, from
// another program's file. Also a whole model of them.

#include "saker/base/json/json.h"
#include "saker/load/files/model_writer.h"
#include "saker/load/files/safetensors.h"

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

// One tensor, or weight, scales and biases of a module. Each output is cut into `rows` equal parts
// along its first axes.
struct LazyTensor {
  std::vector<PlannedTensor> outputs;
  std::int64_t rows = 1;
  // Writes rows [first, first + count) of output i to to[i], unless that is null, as it may be if
  // there are several outputs. Safe to call from several threads.
  std::function<void(std::int64_t first, std::int64_t count, std::span<std::byte* const> to)> make;
  std::optional<Tensor> same = {};  // The file's own tensor, if nothing is converted.
  std::function<void()> release;    // Frees the file's pages; may be empty.

  // Bytes per row of an output.
  std::size_t row_bytes(std::size_t output) const;
};

struct ImportedModel {
  Json config;  // In the form of mlx-lm's models and our own.
  std::vector<LazyTensor> tensors;
  // Folder with the other files of the model (beyond configuration and weights); empty: use
  // `files`.
  std::filesystem::path folder;
  // The content of such files, by name.
  std::map<std::string, std::string> files;
  std::vector<std::string> notes;  // One line each: values that are not exactly the file's.
};

// All outputs of the model's tensors, in order.
std::vector<PlannedTensor> all_outputs(const ImportedModel& model);

// Makes all tensors on all threads of the kernels' pool; memory holds a slice per thread.
// `progress` counts bytes and is called from any thread, one at a time. An exception ends the work.
void write_tensors(
    const ImportedModel& model,
    ModelWriter& writer,
    const std::function<void(std::int64_t done, std::int64_t total)>& progress
);

// All tensors: views of the file if nothing is converted, else in memory.
TensorMap make_tensors(const ImportedModel& model);

}  // namespace saker::load::importers
