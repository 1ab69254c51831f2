// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes a model folder that appears whole or not at all. Weights go into shards as mlx-lm cuts
// them: `model.safetensors`, or `model-00001-of-0000N.safetensors` of at most 5 GiB, and
// `model.safetensors.index.json`. A larger tensor has a shard of its own. Everything is written
// into a temporary folder beside the final one and renamed by `commit`. If the process ends in
// between, nothing is left under the final name.
//
//   ModelWriter writer(dir, {{"model.norm.weight", DType::kBFloat16, {64}}, ...});
//   for (std::size_t i = 0; i < writer.tensors().size(); ++i) {
//     writer.write(i, 0, bytes);      // in any order, in pieces, from several threads
//   }
//   writer.write_text("config.json", write_json(config, 4));
//   writer.copy_files(source_dir);    // the tokenizer's files and the like
//   writer.commit(parameters);

#include "saker/base/files/atomic_folder.h"
#include "saker/load/files/safetensors_writer.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load {

inline constexpr std::size_t kMaxShardBytes = std::size_t{5} << 30;

class ModelWriter {
 public:
  // Throws kInvalidArgument if `dir` exists and is no empty folder, kNotFound if it can't be made,
  // kCapacity if the disk has no room for the tensors. REQUIRES: names differ.
  ModelWriter(
      const std::filesystem::path& dir,
      std::vector<PlannedTensor> tensors,
      std::size_t max_shard_bytes = kMaxShardBytes
  );
  ModelWriter(const ModelWriter&) = delete;
  ModelWriter& operator=(const ModelWriter&) = delete;
  // Removes the temporary folder unless it was committed.
  ~ModelWriter();

  const std::vector<PlannedTensor>& tensors() const { return tensors_; }

  // Writes bytes [offset, offset + bytes.size()) of tensor `index`. Safe to call from several
  // threads. Throws kCapacity when the disk is full. REQUIRES: the range is inside the tensor; each
  // byte is written once.
  void write(std::size_t index, std::size_t offset, std::span<const std::byte> bytes);

  // The temporary folder: write files here before the commit.
  const std::filesystem::path& folder() const { return folder_.path(); }

  // Writes a small file.
  void write_text(std::string_view name, std::string_view text) const;
  // Copies files of `source` that a tokenizer, a template or generation needs, unchanged; returns
  // their names.
  std::vector<std::string> copy_files(const std::filesystem::path& source) const;

  // Writes the index, flushes everything and gives the folder its name. `parameters` is for the
  // index: weights as people count them. REQUIRES: all bytes of all tensors are written.
  void commit(std::int64_t parameters);

 private:
  struct Shard {
    std::string name;
    int descriptor = -1;
    std::size_t first = 0;  // Tensors [first, first + count).
    std::size_t count = 0;
  };

  void cut_shards(std::size_t max_shard_bytes);
  void open_shard(Shard& shard);
  void close_shards();
  std::string index_text(std::int64_t parameters) const;

  AtomicFolder folder_;
  std::vector<PlannedTensor> tensors_;
  std::vector<Shard> shards_;
  std::vector<std::size_t> shard_of_;
  std::vector<std::size_t> begin_;  // Offset in the shard's file.
  std::size_t total_bytes_ = 0;
  std::atomic<std::size_t> written_ = 0;
};

}  // namespace saker::load
