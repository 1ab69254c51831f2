// SPDX-License-Identifier: Apache-2.0
#include "saker/base/atomic_folder.h"

#include "saker/base/error.h"
#include "saker/base/files/temporary_path.h"
#include "saker/base/utf8.h"

#include <fcntl.h>
#include <unistd.h>

#include <system_error>

namespace saker {
namespace {

namespace fs = std::filesystem;

// Without the slash that names of folders may end with; where a link leads.
fs::path plain_name(const fs::path& path) {
  const fs::path whole = fs::absolute(path).lexically_normal();
  const fs::path name = whole.has_filename() ? whole : whole.parent_path();
  std::error_code failed;
  return fs::is_symlink(name, failed) ? fs::weakly_canonical(name) : name;
}

// Makes names in a folder durable, where the file system can.
void sync_folder(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    ::fsync(descriptor);
    ::close(descriptor);
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
}

AtomicFolder::~AtomicFolder() {
  if (!committed_) {
    std::error_code ignored;
    fs::remove_all(temporary_, ignored);
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
