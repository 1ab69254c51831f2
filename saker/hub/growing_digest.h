// SPDX-License-Identifier: Apache-2.0
#pragma once

// The digest of a file that is still being written, by a thread of its own. What arrives is handed
// over in blocks of memory; what was there before, or came faster than it could be digested, is
// read from the file. Members are for one thread; only `wake` is called from the object's own.

#include "saker/hub/digest.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace saker::hub {

// Large enough that waking the thread and writing to the file cost little beside it, small enough
// to stay in a core's cache in between.
inline constexpr std::size_t kBlockBytes = std::size_t{512} << 10;

class GrowingDigest {
 public:
  // `wake` is called once, when the digest is known or reading has failed; it must not throw.
  GrowingDigest(
      std::filesystem::path path, DigestKind kind, std::uintmax_t size, std::function<void()> wake
  );
  GrowingDigest(const GrowingDigest&) = delete;
  GrowingDigest& operator=(const GrowingDigest&) = delete;
  // Does not wait for what is left to read.
  ~GrowingDigest();

  // The first `bytes` of the file are there and will not change. REQUIRES: before any add.
  void start_from(std::uintmax_t bytes);
  // The next bytes of the file, kBlockBytes or the last ones; they were written to it. Returns an
  // empty buffer for the next ones, which has room for them.
  std::vector<std::byte> add(std::vector<std::byte> bytes);

  // None until all `size` bytes were read. Throws what reading failed with.
  std::optional<std::string> result();

 private:
  // Bytes of the file from `offset` on.
  struct Block {
    std::uintmax_t offset = 0;
    std::vector<std::byte> bytes;
  };

  // What is to be digested next.
  struct Work {
    std::optional<Block> block;
    std::uintmax_t file_end = 0;  // Without a block: the file's bytes before this.
  };

  void run();
  void digest_all();
  std::optional<Work> wait_for(std::uintmax_t offset);
  void take_back(Block block);

  const std::filesystem::path path_;
  const DigestKind kind_;
  const std::uintmax_t size_;
  const std::function<void()> wake_;
  std::uintmax_t added_ = 0;  // Bytes of the file that are there.

  std::mutex mutex_;  // Guards what follows.
  std::condition_variable changed_;
  std::deque<Block> blocks_;  // In the file's order.
  std::vector<std::vector<std::byte>> spare_;
  std::uintmax_t file_end_ = 0;  // Bytes before this may be in no block.
  bool stopped_ = false;
  std::optional<std::string> result_;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace saker::hub
