// SPDX-License-Identifier: Apache-2.0
#include "saker/base/files/temporary_path.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>

#ifdef __APPLE__
#include <sys/random.h>
#endif

namespace saker {
namespace {

// File systems allow names of 255 bytes.
constexpr std::size_t kMaxShownName = 200;

std::uint64_t random_bits() {
  std::uint64_t bits = 0;
  const bool is_random = ::getentropy(&bits, sizeof(bits)) == 0;
  require(
      is_random,
      ErrorCode::kCapacity,
      "the system gives no random numbers: {}",
      system_reason(errno)
  );
  return bits;
}

}  // namespace

std::filesystem::path temporary_path(const std::filesystem::path& path) {
  const std::string name = path.filename().native();
  const std::string shown = name.size() <= kMaxShownName ? name + "." : "";
  return path.parent_path() / fmt::format(".{}{:016x}.tmp", shown, random_bits());
}

void make_new_folder(const std::filesystem::path& path, const std::filesystem::path& shown) {
  const bool is_made = ::mkdir(path.c_str(), 0777) == 0;
  require(
      is_made,
      ErrorCode::kNotFound,
      "{}: cannot be made: {}",
      quote_path(shown),
      system_reason(errno)
  );
}

void sync_folder(const std::filesystem::path& folder) {
  const char* const name = folder.empty() ? "." : folder.c_str();
  const int descriptor = ::open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    ::fsync(descriptor);
    ::close(descriptor);
  }
}

}  // namespace saker
