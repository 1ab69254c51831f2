// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes a model folder that appears whole or not at all. Weights go into shards as mlx-lm cuts
// them: `model.safetensors`, or `model-00001-of-0000N.safetensors` of at most 5 GiB (a larger
// tensor has one of its own), and `model.safetensors.index.json`. Everything is written into
// ".<name>.<process>-<number>.tmp" beside the final folder and renamed by `commit`; what ends the
// process in between leaves nothing under the final name.
//
//   ModelWriter writer(dir, {{"model.norm.weight", DType::kBFloat16, {64}}, ...});
//   for (std::size_t i = 0; i < writer.tensors().size(); ++i) {
//     writer.write(i, 0, bytes);      // in any order, in pieces, from several threads
//   }
//   writer.write_text("config.json", write_json(config, 4));
//   writer.copy_files(source_dir);    // the tokenizer's files and the like
//   writer.commit(parameters);

#include "saker/base/atomic_folder.h"
#include "saker/load/safetensors_writer.h"

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
  // Throws kInvalidArgument when `dir` exists and is no empty folder, kNotFound where none can be
  // made, kCapacity when the disk has no room for the tensors. REQUIRES: names differ.
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

  // Bytes [offset, offset + bytes.size()) of tensor `index`. Safe to call from several threads.
  // Throws kCapacity when the disk takes no more. REQUIRES: within the tensor, each byte once.
  void write(std::size_t index, std::size_t offset, std::span<const std::byte> bytes);

  // Where the folder's files go until it is committed.
  const std::filesystem::path& folder() const { return folder_.path(); }

  // A small file of the folder.
  void write_text(std::string_view name, std::string_view text) const;
  // What `source` holds beside configuration and weights that a tokenizer, a template or a
  // generation needs, as it is; returns the names.
  std::vector<std::string> copy_files(const std::filesystem::path& source) const;

  // Writes the index, flushes all and gives the folder its name. `parameters`: weights as people
  // count them, for the index. REQUIRES: all bytes of all tensors were written.
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
  std::vector<std::size_t> begin_;  // In the shard's file.
  std::size_t total_bytes_ = 0;
  std::atomic<std::size_t> written_ = 0;
};

}  // namespace saker::load
