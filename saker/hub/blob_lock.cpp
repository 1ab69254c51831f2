// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/blob_lock.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>

namespace saker::hub {
namespace {

// Users of one group may share a cache.
constexpr mode_t kMode = 0664;

}  // namespace

bool is_in_place(int descriptor, const std::filesystem::path& path) {
  struct stat opened{};
  struct stat named{};
  return ::fstat(descriptor, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

bool is_locked(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) {
    return false;
  }
  const bool locked = ::flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(descriptor);
  return locked;
}

std::optional<BlobLock> BlobLock::try_lock(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kMode);
  require(
      descriptor >= 0,
      ErrorCode::kNotFound,
      "{}: cannot be made: {}",
      quote_path(path),
      system_reason(errno)
  );
  BlobLock lock(descriptor);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
    return is_in_place(descriptor, path) ? std::optional(std::move(lock)) : std::nullopt;
  }
  const bool taken = errno == EWOULDBLOCK || errno == EACCES || errno == EINTR;
  return taken ? std::nullopt : std::optional(std::move(lock));
}

BlobLock::BlobLock(BlobLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

BlobLock& BlobLock::operator=(BlobLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

BlobLock::~BlobLock() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

}  // namespace saker::hub
