// SPDX-License-Identifier: Apache-2.0
#include "saker/base/files/atomic_file.h"

#include "saker/base/error.h"
#include "saker/base/mapped_file.h"

#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <iterator>

namespace saker {
namespace {

namespace fs = std::filesystem;

using testing::expect_error;
using testing::TemporaryDir;

std::ptrdiff_t entries(const fs::path& dir) {
  return std::distance(fs::directory_iterator(dir), {});
}

mode_t permissions(const fs::path& path) {
  struct stat status{};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return status.st_mode & 0777;
}

void write_whole(const fs::path& path, FileReaders readers = FileReaders::kUsual) {
  AtomicFile file(path, readers);
  file.write("text");
  file.commit();
}

// For a test; restored at its end.
class Umask {
 public:
  explicit Umask(mode_t mask) : before_(::umask(mask)) {}

  Umask(const Umask&) = delete;
  Umask& operator=(const Umask&) = delete;

  ~Umask() { ::umask(before_); }

 private:
  mode_t before_;
};

TEST(AtomicFile, AppearsWhole) {
  const TemporaryDir dir;
  const fs::path path = dir.write("file", "before");
  AtomicFile file(path);
  file.write("after");
  EXPECT_EQ(read_file(path, 100), "before");
  file.commit();
  EXPECT_EQ(read_file(path, 100), "after");
  EXPECT_EQ(entries(dir.path()), 1);
}

TEST(AtomicFile, LeavesNothingUnlessCommitted) {
  const TemporaryDir dir;
  AtomicFile(dir.path() / "file").write("text");
  EXPECT_EQ(entries(dir.path()), 0);
}

// Whatever others have made beforehand: two writers of one file never meet.
TEST(AtomicFile, WritersOfOneFileDoNotMeet) {
  const TemporaryDir dir;
  const fs::path path = dir.path() / "file";
  AtomicFile one(path);
  AtomicFile other(path);
  one.write("one");
  other.write("other");
  one.commit();
  other.commit();
  EXPECT_EQ(read_file(path, 100), "other");
}

TEST(AtomicFile, TakesNoNameThatIsThere) {
  const TemporaryDir dir;
  const fs::path victim = dir.write("victim", "precious");
  fs::create_symlink(victim, dir.path() / "link");
  expect_error(ErrorCode::kNotFound, {"file", "exists"}, [&] {
    AtomicFile(dir.path() / "file", dir.path() / "link");
  });
  EXPECT_EQ(read_file(victim, 100), "precious");
  EXPECT_TRUE(fs::is_symlink(dir.path() / "link"));
}

TEST(AtomicFile, AReplacedFileKeepsItsPermissions) {
  const Umask usual(022);
  const TemporaryDir dir;
  write_whole(dir.path() / "new");
  EXPECT_EQ(permissions(dir.path() / "new"), 0644U);
  for (const mode_t mode : {0600U, 0640U, 0666U}) {
    const fs::path path = dir.write("old", "before");
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    write_whole(path);
    EXPECT_EQ(permissions(path), mode);
  }
}

TEST(AtomicFile, MayBeForItsOwnerAlone) {
  const Umask open(0);
  const TemporaryDir dir;
  write_whole(dir.path() / "new", FileReaders::kOwner);
  EXPECT_EQ(permissions(dir.path() / "new"), 0600U);
  const fs::path path = dir.write("old", "before");
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  write_whole(path, FileReaders::kOwner);
  EXPECT_EQ(permissions(path), 0600U);
}

TEST(AtomicFile, RefusesWhatIsNoFile) {
  const TemporaryDir dir;
  expect_error(ErrorCode::kInvalidArgument, {"not a regular file"}, [&] {
    AtomicFile(dir.path());
  });
  expect_error(ErrorCode::kNotFound, {"missing", "No such file"}, [&] {
    AtomicFile(dir.path() / "missing" / "file");
  });
}

}  // namespace
}  // namespace saker
