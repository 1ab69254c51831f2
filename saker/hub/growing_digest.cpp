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
#include <utility>
#include <vector>

namespace saker::hub {
namespace {

// Small enough to stay in a core's cache between reading and digesting.
constexpr std::size_t kChunk = std::size_t{256} << 10;
// At most this many blocks wait: 16 MB per file under way.
constexpr std::size_t kMaxBlocks = 32;

// Reads at least one and up to `chunk.size()` bytes at `offset`.
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
      quote_path(path),
      count == 0 ? "it became shorter" : system_reason(errno)
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

void GrowingDigest::start_from(std::uintmax_t bytes) {
  added_ = bytes;
  {
    const std::lock_guard lock(mutex_);
    file_end_ = bytes;
  }
  changed_.notify_one();
}

// If too many blocks wait, the bytes are read from the file later.
std::vector<std::byte> GrowingDigest::add(std::vector<std::byte> bytes) {
  const std::uintmax_t offset = added_;
  added_ += bytes.size();
  {
    const std::lock_guard lock(mutex_);
    if (blocks_.size() < kMaxBlocks) {
      blocks_.push_back({.offset = offset, .bytes = std::move(bytes)});
      bytes = {};
      if (!spare_.empty()) {
        bytes = std::move(spare_.back());
        spare_.pop_back();
      }
    } else {
      file_end_ = added_;
    }
  }
  changed_.notify_one();
  bytes.clear();
  bytes.reserve(kBlockBytes);
  return bytes;
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
    digest_all();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
  }
  wake_();
}

// Empty once the object is destroyed.
std::optional<GrowingDigest::Work> GrowingDigest::wait_for(std::uintmax_t offset) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || !blocks_.empty() || offset < file_end_; });
  if (stopped_) {
    return std::nullopt;
  }
  Work work;
  if (!blocks_.empty() && blocks_.front().offset == offset) {
    work.block = std::move(blocks_.front());
    blocks_.pop_front();
  } else {
    work.file_end = blocks_.empty() ? file_end_ : blocks_.front().offset;
  }
  return work;
}

void GrowingDigest::take_back(Block block) {
  const std::lock_guard lock(mutex_);
  spare_.push_back(std::move(block.bytes));
}

void GrowingDigest::digest_all() {
  Digest digest(kind_, size_);
  std::optional<OpenFile> file;
  std::vector<std::byte> chunk;
  for (std::uintmax_t offset = 0; offset < size_;) {
    auto work = wait_for(offset);
    if (!work) {
      return;
    }
    if (work->block) {
      digest.add(work->block->bytes);
      offset += work->block->bytes.size();
      take_back(*std::move(work->block));
      continue;
    }
    if (!file) {
      file.emplace(path_);
      chunk.resize(std::min<std::uintmax_t>(kChunk, size_));
    }
    const auto count = std::min<std::uintmax_t>(chunk.size(), work->file_end - offset);
    const std::size_t got = read_at(*file, path_, offset, std::span(chunk).first(count));
    digest.add(std::span(chunk).first(got));
    offset += got;
  }
  std::string text = digest.finish();
  const std::lock_guard lock(mutex_);
  result_ = std::move(text);
}

}  // namespace saker::hub
