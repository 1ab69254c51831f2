// SPDX-License-Identifier: Apache-2.0
#include "saker/base/atomic_folder.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <unistd.h>

#include <atomic>
#include <string>
#include <system_error>

namespace saker {
namespace {

namespace fs = std::filesystem;

std::string show(const fs::path& path) {
  return quote(path.native(), path.native().size());
}

// Without the slash that names of folders may end with.
fs::path plain_name(const fs::path& path) {
  const fs::path whole = fs::absolute(path).lexically_normal();
  return whole.has_filename() ? whole : whole.parent_path();
}

}  // namespace

AtomicFolder::AtomicFolder(const fs::path& path) : path_(plain_name(path)) {
  static std::atomic<unsigned> last{0};
  std::error_code failed;
  require(
      !fs::exists(path_, failed) ||
          (fs::is_directory(path_, failed) && fs::is_empty(path_, failed)),
      ErrorCode::kInvalidArgument,
      "{}: exists and is no empty folder",
      show(path)
  );
  temporary_ = path_.parent_path() /
               fmt::format(".{}.{}-{}.tmp", path_.filename().native(), ::getpid(), ++last);
  failed.clear();
  fs::create_directories(temporary_, failed);
  require(!failed, ErrorCode::kNotFound, "{}: cannot be made: {}", show(path), failed.message());
}

AtomicFolder::~AtomicFolder() {
  if (!committed_) {
    std::error_code ignored;
    fs::remove_all(temporary_, ignored);
  }
}

void AtomicFolder::commit() {
  std::error_code failed;
  fs::rename(temporary_, path_, failed);
  require(!failed, ErrorCode::kNotFound, "{}: cannot be made: {}", show(path_), failed.message());
  committed_ = true;
}

}  // namespace saker
