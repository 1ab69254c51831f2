// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/growing_digest.h"

#include "saker/base/error.h"
#include "saker/base/open_file.h"
#include "saker/base/utf8.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace saker::hub {
namespace {

// Small enough to stay in a core's cache between reading and digesting.
constexpr std::size_t kChunk = std::size_t{256} << 10;
// Bytes that are waited for, so that not each write wakes the thread.
constexpr std::size_t kBatch = std::size_t{4} << 20;

// Reads up to `chunk.size()` bytes at `offset`; at least one.
std::size_t read_at(
    const OpenFile& file,
    const std::filesystem::path& path,
    std::uintmax_t offset,
    std::span<std::byte> chunk
) {
  ssize_t count = -1;
  do {
    count = ::pread(file.descriptor(), chunk.data(), chunk.size(), static_cast<off_t>(offset));
  } while (count < 0 && errno == EINTR);
  require(
      count > 0,
      ErrorCode::kNotFound,
      "{}: cannot be read: {}",
      quote(path.native(), path.native().size()),
      count == 0 ? "it became shorter" : std::generic_category().message(errno)
  );
  return static_cast<std::size_t>(count);
}

}  // namespace

GrowingDigest::GrowingDigest(
    std::filesystem::path path, DigestKind kind, std::uintmax_t size, std::function<void()> wake
)
    : path_(std::move(path)), kind_(kind), size_(size), wake_(std::move(wake)), thread_([this] {
        run();
      }) {}

GrowingDigest::~GrowingDigest() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void GrowingDigest::grow_to(std::uintmax_t bytes) {
  bool enough = false;
  {
    const std::lock_guard lock(mutex_);
    available_ = bytes;
    enough = available_ >= wanted_;
  }
  if (enough) {
    changed_.notify_one();
  }
}

std::optional<std::string> GrowingDigest::result() {
  const std::lock_guard lock(mutex_);
  if (failure_) {
    std::rethrow_exception(failure_);
  }
  return result_;
}

void GrowingDigest::run() {
  try {
    read_all();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
  }
  wake_();
}

// Bytes that are there, `wanted` or more; none once the object goes.
std::optional<std::uintmax_t> GrowingDigest::wait_for(std::uintmax_t wanted) {
  std::unique_lock lock(mutex_);
  wanted_ = wanted;
  changed_.wait(lock, [&] { return stopped_ || available_ >= wanted; });
  return stopped_ ? std::nullopt : std::optional(std::min(available_, size_));
}

void GrowingDigest::read_all() {
  const OpenFile file(path_);
  Digest digest(kind_, size_);
  std::vector<std::byte> chunk(std::min<std::uintmax_t>(kChunk, size_));
  for (std::uintmax_t offset = 0; offset < size_;) {
    const auto available = wait_for(std::min<std::uintmax_t>(size_, offset + kBatch));
    if (!available) {
      return;
    }
    while (offset < *available) {
      const auto count = std::min<std::uintmax_t>(chunk.size(), *available - offset);
      const std::span<std::byte> bytes(chunk.data(), count);
      const std::size_t got = read_at(file, path_, offset, bytes);
      digest.add(bytes.first(got));
      offset += got;
    }
  }
  std::string text = digest.finish();
  const std::lock_guard lock(mutex_);
  result_ = std::move(text);
}

}  // namespace saker::hub
