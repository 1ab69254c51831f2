// SPDX-License-Identifier: Apache-2.0
#include "saker/base/archive/zip_archive.h"

#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include "tests/support/zip_builder.h"
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace saker {
namespace {

using testing::expect_error;
using testing::TemporaryDir;
using testing::zip_file;
using testing::ZipEntry;

void refuse(const std::vector<std::string_view>& words, std::string_view bytes) {
  const TemporaryDir dir;
  const auto path = dir.write("a.npz", bytes);
  expect_error(ErrorCode::kCorruptData, words, [&] {
    ZipArchive archive = ZipArchive::open(path);
    for (std::size_t i = 0; i < archive.names().size(); ++i) {
      archive.read(i);
    }
  });
}

TEST(ZipArchive, GivesNamesAndBytes) {
  const TemporaryDir dir;
  const auto path = dir.write("a.zip", zip_file({{"one", "abc"}, {"two/three", ""}}));
  ZipArchive archive = ZipArchive::open(path);
  EXPECT_EQ(archive.names(), (std::vector<std::string>{"one", "two/three"}));
  const auto bytes = archive.read(0);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()), "abc");
  EXPECT_TRUE(archive.read(1)->empty());
  EXPECT_TRUE(ZipArchive::open(dir.write("b.zip", zip_file({}))).names().empty());
}

TEST(ZipArchive, RefusesWhatIsNone) {
  refuse({"no zip archive"}, "");
  refuse({"no zip archive"}, "PK");
  refuse({"no zip archive"}, std::string(1000, 'x'));
  const std::string whole = zip_file({{"one", "abcdefgh"}});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    refuse({"a.npz"}, std::string_view(whole).substr(0, size));
  }
}

TEST(ZipArchive, RefusesDamage) {
  std::string bytes = zip_file({{"one", "abcdefgh"}});
  bytes[bytes.find("abcdefgh")] ^= 1;
  refuse({"'one'"}, bytes);
  refuse({"'one'"}, zip_file({{"one", "abc", 5}}));
  refuse({"'one'"}, zip_file({{"one", "abc", 0, 12}}));
}

// A small file whose entries would take more memory than anything that is meant.
TEST(ZipArchive, RefusesBombs) {
  refuse({"overlap"}, zip_file({{"one", "abc"}, {"two", "abc", 0, 0, true}}));
  refuse({"unpacks to", "expected at most"}, zip_file({{"one", "abc", 0xf0000000U}}));
  std::vector<ZipEntry> many;
  for (int i = 0; i < 40; ++i) {
    many.push_back({std::to_string(i), "abc", 0x1000000U});
  }
  refuse({"unpacks to", "expected at most"}, zip_file(many));
}

}  // namespace
}  // namespace saker
