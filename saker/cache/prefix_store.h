// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows of prefixes in a folder, one file per edge of the trie: they outlive the process. Knows
// tokens and bytes, no arrays.
//
// File, little-endian: Header, key, path (int32 tokens from the root on), payload. A file appears
// whole or not at all and never changes. Length, version and checksums are checked; a bad file is
// left out of the index with a warning and removed from the folder. Foreign files are not touched.
// The folder's size is bounded: the least recently used files go first. Several processes may use
// one folder.
//
// The store's own thread writes files, in order. Its queue is bounded; `write` waits while it is
// full. Threading: one thread calls.

#include "saker/base/checked_reader.h"
#include "saker/base/thread_queue.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace saker::cache {

class PrefixStore {
 public:
  using Tokens = std::span<const std::int32_t>;
  using Bytes = std::span<const std::byte>;

  // Rows [first, path.size()) of a sequence that starts with `path`.
  struct Entry {
    std::filesystem::path file;
    std::string key;
    std::vector<std::int32_t> path;
    std::int64_t first = 0;
    std::uintmax_t bytes = 0;  // Size of the file.
    std::filesystem::file_time_type used;
    std::shared_future<bool> written;  // For new entries: true once the file is there.
  };

  // Consecutive parts; they live as long as the owner.
  struct Payload {
    std::vector<Bytes> parts;
    std::shared_ptr<const void> owner;
  };

  // Reads the folder's index. Throws kNotFound if the folder cannot be made or read.
  PrefixStore(std::filesystem::path folder, std::uintmax_t byte_budget);
  PrefixStore(const PrefixStore&) = delete;
  PrefixStore& operator=(const PrefixStore&) = delete;
  ~PrefixStore();  // Waits for the files.

  // True if an entry has these rows.
  bool has(std::string_view key, Tokens path, std::int64_t first) const;
  // Adds an entry. If it cannot be written, it is left out with a warning.
  void write(std::string_view key, Tokens path, std::int64_t first, Payload payload);
  // The entry that extends the first `known` tokens furthest along `tokens` and has all rows from
  // there on; null: none. The pointer is valid until the next change.
  const Entry* find(std::string_view key, Tokens tokens, std::int64_t known) const;
  // Passes an entry's payload to `use` once its file is written, and marks the entry as used.
  // Returns false, with the entry removed, if the file is damaged. That is certain only after
  // `use`: the caller must then discard what `use` made. `use` reads all that is left. If it throws
  // kCorruptData, the file counts as damaged; other errors are passed on.
  bool read(const Entry& entry, const std::function<void(CheckedReader& payload)>& use);
  void remove(const Entry& entry);
  // Waits for the oldest file that is being written, whose rows are free then; false if there is
  // none.
  bool finish_one();

  std::uintmax_t bytes() const { return bytes_; }

  std::size_t size() const { return entries_.size(); }

 private:
  // A file in the queue.
  struct Pending {
    std::shared_future<bool> written;
    std::uintmax_t bytes = 0;
  };

  void scan();
  void make_room(std::uintmax_t bytes);
  void bound_pending(std::uintmax_t bytes);

  std::filesystem::path folder_;
  std::uintmax_t byte_budget_;
  std::map<std::string, Entry> entries_;  // By file name.
  std::uintmax_t bytes_ = 0;
  std::deque<Pending> pending_;
  std::uintmax_t pending_bytes_ = 0;
  ThreadQueue<std::packaged_task<bool()>> writes_;
  std::thread writer_;
};

}  // namespace saker::cache
