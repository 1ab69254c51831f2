// SPDX-License-Identifier: Apache-2.0
#include "saker/base/files/atomic_folder.h"

#include "saker/base/error.h"
#include "saker/base/file_lock.h"
#include "saker/base/files/temporary_path.h"
#include "saker/base/utf8.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace saker {
namespace {

namespace fs = std::filesystem;

// Without a trailing slash, and with links resolved.
fs::path plain_name(const fs::path& path) {
  const fs::path whole = fs::absolute(path).lexically_normal();
  const fs::path name = whole.has_filename() ? whole : whole.parent_path();
  std::error_code failed;
  return fs::is_symlink(name, failed) ? fs::weakly_canonical(name) : name;
}

int open_folder(const fs::path& path) {
  return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

// True if `candidate` has the form of a temporary_path of `path` that contains its name.
bool is_temporary_of(const fs::path& candidate, const fs::path& path) {
  constexpr std::string_view kEnd = ".tmp";
  constexpr std::size_t kDigits = 16;
  const std::string start = "." + path.filename().native() + ".";
  const std::string name = candidate.filename().native();
  return name.size() == start.size() + kDigits + kEnd.size() && name.starts_with(start) &&
         name.ends_with(kEnd) &&
         name.substr(start.size(), kDigits).find_first_not_of("0123456789abcdef") ==
             std::string::npos;
}

// True if somebody holds the folder's lock.
bool is_locked(const fs::path& folder) {
  const int descriptor = open_folder(folder);
  const bool locked = descriptor < 0 || !try_lock(descriptor);
  if (descriptor >= 0) {
    ::close(descriptor);
  }
  return locked;
}

// Removes temporary folders for `path` whose process has ended. `own` is locked, so it reveals file
// systems without locks. Young folders stay: their process may not have locked them yet.
void remove_stale(const fs::path& path, const fs::path& own) {
  constexpr auto kYoung = std::chrono::minutes(1);
  std::error_code failed;
  std::vector<fs::path> stale;
  fs::directory_iterator entry(path.parent_path(), failed);
  for (; !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
    std::error_code unknown;
    const auto changed = entry->last_write_time(unknown);
    if (entry->path() != own && is_temporary_of(entry->path(), path) && !unknown &&
        fs::file_time_type::clock::now() - changed > kYoung) {
      stale.push_back(entry->path());
    }
  }
  for (const fs::path& folder : stale) {
    if (is_locked(own) && !is_locked(folder)) {
      std::error_code ignored;
      fs::remove_all(folder, ignored);
    }
  }
}

}  // namespace

AtomicFolder::AtomicFolder(const fs::path& path) : path_(plain_name(path)) {
  std::error_code failed;
  require(
      !fs::exists(fs::symlink_status(path_, failed)) ||
          (fs::is_directory(path_, failed) && fs::is_empty(path_, failed)),
      ErrorCode::kInvalidArgument,
      "{}: exists and is no empty folder",
      quote_path(path)
  );
  failed.clear();
  fs::create_directories(path_.parent_path(), failed);
  require(
      !failed, ErrorCode::kNotFound, "{}: cannot be made: {}", quote_path(path), failed.message()
  );
  temporary_ = temporary_path(path_);
  make_new_folder(temporary_, path);
  lock_ = open_folder(temporary_);
  if (lock_ >= 0) {
    try_lock(lock_);
    remove_stale(path_, temporary_);
  }
}

AtomicFolder::~AtomicFolder() {
  if (!committed_) {
    std::error_code ignored;
    fs::remove_all(temporary_, ignored);
  }
  if (lock_ >= 0) {
    ::close(lock_);
  }
}

void AtomicFolder::commit() {
  std::error_code failed;
  sync_folder(temporary_);
  fs::rename(temporary_, path_, failed);
  require(
      !failed, ErrorCode::kNotFound, "{}: cannot be made: {}", quote_path(path_), failed.message()
  );
  committed_ = true;
  sync_folder(path_.parent_path());
}

}  // namespace saker
