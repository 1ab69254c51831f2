// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/io/lost_files.h"

#include "saker/base/error.h"
#include "saker/base/files/atomic_file.h"
#include "saker/base/mapped_file.h"

#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace saker::cli {
namespace {

using saker::testing::TemporaryDir;
using ::testing::ExitedWithCode;
using ::testing::KilledBySignal;

int read_last(const MappedFile& file) {
  const volatile std::byte* last = &file.bytes().back();
  return std::to_integer<int>(*last);
}

// Writes to a file that may not grow; the exit code.
int write_beyond_the_limit(const std::filesystem::path& folder) {
  const rlimit limit{.rlim_cur = 4096, .rlim_max = 4096};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  saker::testing::expect_error(ErrorCode::kCapacity, {"File too large"}, [&] {
    AtomicFile(folder / "file").write(std::string(10'000, 'x'));
  });
  return std::filesystem::is_empty(folder) && !::testing::Test::HasFailure() ? 0 : 2;
}

TEST(LostFiles, AFileThatShrinksIsOneLine) {
  const TemporaryDir dir;
  const auto path = dir.write("model \x1b[31m\xc2\x9b.safetensors", std::string(100'000, 'x'));
  const auto file = MappedFile::open(path);
  std::filesystem::resize_file(path, 10);
  EXPECT_EXIT(
      {
        explain_lost_files();
        std::exit(read_last(*file));
      },
      ExitedWithCode(1),
      "^error: '/.*/model \\?\\[31m..\\.safetensors': cannot be read any more: [^\n]*\n$"
  );
}

TEST(LostFiles, OneOfManyThreadsTellsIt) {
  const TemporaryDir dir;
  const auto path = dir.write("model", std::string(100'000, 'x'));
  const auto file = MappedFile::open(path);
  std::filesystem::resize_file(path, 10);
  EXPECT_EXIT(
      {
        explain_lost_files();
        std::vector<std::jthread> readers;
        for (int i = 0; i < 8; ++i) {
          readers.emplace_back([&] { read_last(*file); });
        }
        readers.clear();
        std::exit(0);
      },
      ExitedWithCode(1),
      "^error: [^\n]*\n$"
  );
}

TEST(LostFiles, OtherFaultsStayWhatTheyAre) {
  EXPECT_EXIT(
      {
        explain_lost_files();
        std::raise(SIGBUS);
        std::raise(SIGBUS);
      },
      KilledBySignal(SIGBUS),
      ""
  );
}

TEST(LostFiles, AFileThatMayNotGrowIsAnError) {
  const TemporaryDir dir;
  EXPECT_EXIT(
      {
        fail_large_writes();
        std::exit(write_beyond_the_limit(dir.path()));
      },
      ExitedWithCode(0),
      ""
  );
}

}  // namespace
}  // namespace saker::cli
