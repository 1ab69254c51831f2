// SPDX-License-Identifier: Apache-2.0
#pragma once

// The digest of a file that is still being written, computed by a thread of its own. Bytes that
// arrive are handed over in blocks of memory. Earlier bytes, and bytes that arrive faster than they
// can be digested, are read from the file. Call all members from one thread; `wake` is called from
// the object's own thread.

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

// Large enough that waking the thread and writing the file cost little; small enough to stay in a
// core's cache in between.
inline constexpr std::size_t kBlockBytes = std::size_t{512} << 10;

class GrowingDigest {
 public:
  // `wake` is called once: when the digest is known or reading has failed. It must not throw.
  GrowingDigest(
      std::filesystem::path path, DigestKind kind, std::uintmax_t size, std::function<void()> wake
  );
  GrowingDigest(const GrowingDigest&) = delete;
  GrowingDigest& operator=(const GrowingDigest&) = delete;
  // Does not wait for the rest of the file.
  ~GrowingDigest();

  // States that the first `bytes` of the file are there and will not change. REQUIRES: no add()
  // before.
  void start_from(std::uintmax_t bytes);
  // Adds the next bytes of the file: kBlockBytes of them, or the last ones. REQUIRES: they are
  // written to it. Returns an empty buffer with room for the next block.
  std::vector<std::byte> add(std::vector<std::byte> bytes);

  // Empty until all `size` bytes are read. Rethrows the error of a failed read.
  std::optional<std::string> result();

 private:
  // Bytes of the file, from `offset` on.
  struct Block {
    std::uintmax_t offset = 0;
    std::vector<std::byte> bytes;
  };

  // The next bytes to digest.
  struct Work {
    std::optional<Block> block;
    std::uintmax_t file_end = 0;  // Without a block: read the file up to this byte.
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

  std::mutex mutex_;  // Guards the members below.
  std::condition_variable changed_;
  std::deque<Block> blocks_;  // In the file's order.
  std::vector<std::vector<std::byte>> spare_;
  std::uintmax_t file_end_ = 0;  // Bytes before this may be in no block: read them from the file.
  bool stopped_ = false;
  std::optional<std::string> result_;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace saker::hub
