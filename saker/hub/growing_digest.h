// SPDX-License-Identifier: Apache-2.0
#pragma once

// The digest of a file that is still being written: a thread of its own reads what is there, from
// the system's cache, while more arrives. Members are for one thread; only `wake` is called from
// the object's own.

#include "saker/hub/digest.h"

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace saker::hub {

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

  // The first `bytes` of the file are there and will not change.
  void grow_to(std::uintmax_t bytes);

  // None until all `size` bytes were read. Throws what reading failed with.
  std::optional<std::string> result();

 private:
  void run();
  void read_all();
  std::optional<std::uintmax_t> wait_for(std::uintmax_t wanted);

  const std::filesystem::path path_;
  const DigestKind kind_;
  const std::uintmax_t size_;
  const std::function<void()> wake_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uintmax_t available_ = 0;
  std::uintmax_t wanted_ = 0;  // What the thread waits for.
  bool stopped_ = false;
  std::optional<std::string> result_;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace saker::hub
