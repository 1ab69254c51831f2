// SPDX-License-Identifier: Apache-2.0
#include "saker/base/file_lock.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

namespace saker {
namespace {

using std::chrono::milliseconds;

// Longer than any of our locks is held in normal operation.
constexpr milliseconds kSilentWait{2000};
constexpr milliseconds kLongestPause{50};

// Waits for the lock as flock does, and logs a warning if that takes long.
int lock_telling(int descriptor, const std::filesystem::path& path) {
  int operation = LOCK_EX | LOCK_NB;
  milliseconds waited{0};
  milliseconds pause{1};
  while (::flock(descriptor, operation) != 0) {
    if (errno == EWOULDBLOCK && waited < kSilentWait) {
      std::this_thread::sleep_for(pause);
      waited += pause;
      pause = std::min(2 * pause, kLongestPause);
    } else if (errno == EWOULDBLOCK) {
      spdlog::warn("{}: another process holds this lock; waiting for it", quote_path(path));
      operation = LOCK_EX;
    } else if (errno != EINTR) {
      return -1;
    }
  }
  return 0;
}

}  // namespace

FileLock::FileLock(const std::filesystem::path& path) {
  constexpr int kMode = 0644;
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kMode);
  require(
      descriptor_ >= 0,
      ErrorCode::kNotFound,
      "{}: the lock file can't be made: {}",
      path.string(),
      system_reason(errno)
  );
  const int result = lock_telling(descriptor_, path);
  if (result != 0) {
    const int error = errno;
    ::close(descriptor_);
    throw Error(
        ErrorCode::kNotFound,
        fmt::format("{}: the file can't be locked: {}", path.string(), system_reason(error))
    );
  }
}

FileLock::~FileLock() {
  ::close(descriptor_);
}

bool try_lock(int descriptor) {
  return ::flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

}  // namespace saker
