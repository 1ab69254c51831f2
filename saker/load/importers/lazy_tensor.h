// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lazy tensors: tensors in MLX's formats that are converted on demand, some rows at a time, from
// another program's file. Also a whole model of them.

#include "saker/base/json/json.h"
#include "saker/kernels/layout/weight_format.h"
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
  // By path: modules whose weights are the file's blocks (kernels/layout/block_format.h), which no
  // format of MLX's configurations describes.
  std::map<std::string, kernels::WeightFormat> block_formats = {};
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

// Makes tensors one by one, on all threads, so that memory holds those of one module. A module's
// other tensors are made with its first one and kept until they are asked for. Not thread-safe.
class TensorMaker {
 public:
  explicit TensorMaker(ImportedModel model);

  // All tensors of the model; converted ones have no bytes.
  TensorMap tensors() const;

  // The tensor of this name. REQUIRES: it is one of tensors(), without bytes.
  Tensor make(const std::string& name);

 private:
  ImportedModel model_;
  std::map<std::string, std::size_t> sources_;  // The model's tensor with this output.
  TensorMap made_;
};

}  // namespace saker::load::importers
