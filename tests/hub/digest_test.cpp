// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/digest.h"

#include "saker/base/error.h"
#include "saker/hub/blob_lock.h"
#include "saker/hub/growing_digest.h"

#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace saker::hub {
namespace {

using testing::expect_error;
using testing::TemporaryDir;

std::string digest(DigestKind kind, std::string_view text) {
  Digest digest(kind, text.size());
  const auto bytes = std::as_bytes(std::span(text));
  digest.add(bytes.first(bytes.size() / 2));
  digest.add(bytes.subspan(bytes.size() / 2));
  return digest.finish();
}

std::string wait_for(GrowingDigest& digest) {
  for (;;) {
    if (const auto result = digest.result()) {
      return *result;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// FIPS 180-4's example, and what `git hash-object` gives.
TEST(Digest, KnownValues) {
  EXPECT_EQ(
      digest(DigestKind::kSha256, "abc"),
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
  );
  EXPECT_EQ(digest(DigestKind::kGitBlob, "hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a");
  EXPECT_EQ(digest(DigestKind::kGitBlob, ""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
}

// Bytes that are nowhere the same.
std::string counted_text(std::size_t size) {
  std::string text;
  for (std::uint32_t i = 0; text.size() < size; ++i) {
    text.append(reinterpret_cast<const char*>(&i), sizeof(i));
  }
  text.resize(size);
  return text;
}

// A part of the text as its own bytes.
std::vector<std::byte> bytes_of(std::string_view text, std::size_t begin, std::size_t size) {
  const auto part = std::as_bytes(std::span(text)).subspan(begin, size);
  return {part.begin(), part.end()};
}

TEST(GrowingDigest, FollowsAFile) {
  const TemporaryDir dir;
  const std::string text = counted_text(3'000'001);
  const auto path = dir.write("part", "");
  std::atomic<int> woken = 0;
  GrowingDigest growing(path, DigestKind::kSha256, text.size(), [&] { ++woken; });
  std::ofstream file(path, std::ios::binary);
  for (std::size_t begin = 0; begin < text.size(); begin += 700'000) {
    EXPECT_EQ(growing.result(), std::nullopt);
    const std::size_t end = std::min(text.size(), begin + 700'000);
    file.write(text.data() + begin, static_cast<std::streamsize>(end - begin));
    file.flush();
    const auto buffer = growing.add(bytes_of(text, begin, end - begin));
    EXPECT_TRUE(buffer.empty());
    EXPECT_GE(buffer.capacity(), kBlockBytes);
  }
  EXPECT_EQ(wait_for(growing), digest(DigestKind::kSha256, text));
  while (woken == 0) {
    std::this_thread::yield();
  }
  EXPECT_EQ(woken, 1);
}

// Much of it comes before the thread can have digested it, and the beginning was there.
TEST(GrowingDigest, ReadsWhatItWasNotHanded) {
  const TemporaryDir dir;
  const std::string text = counted_text(80'000'003);
  GrowingDigest growing(dir.write("part", text), DigestKind::kGitBlob, text.size(), [] {});
  constexpr std::size_t kThere = 1'234'567;
  growing.start_from(kThere);
  for (std::size_t begin = kThere; begin < text.size(); begin += 16'384) {
    growing.add(bytes_of(text, begin, std::min<std::size_t>(16'384, text.size() - begin)));
  }
  EXPECT_EQ(wait_for(growing), digest(DigestKind::kGitBlob, text));
}

TEST(GrowingDigest, EndsEarly) {
  const TemporaryDir dir;
  const auto path = dir.write("part", "abc");
  {
    const GrowingDigest growing(path, DigestKind::kSha256, 1'000'000, [] {});
  }
  GrowingDigest empty(dir.write("empty", ""), DigestKind::kGitBlob, 0, [] {});
  EXPECT_EQ(wait_for(empty), digest(DigestKind::kGitBlob, ""));
}

TEST(GrowingDigest, FailsWithTheFile) {
  const TemporaryDir dir;
  GrowingDigest missing(dir.path() / "none", DigestKind::kSha256, 1, [] {});
  missing.start_from(1);
  expect_error(ErrorCode::kNotFound, {"none"}, [&] { wait_for(missing); });
  GrowingDigest shorter(dir.write("part", "abc"), DigestKind::kSha256, 10, [] {});
  shorter.start_from(10);
  expect_error(ErrorCode::kNotFound, {"shorter"}, [&] { wait_for(shorter); });
}

TEST(BlobLock, OneHolderAtATime) {
  const TemporaryDir dir;
  const auto path = dir.path() / "x.lock";
  auto first = BlobLock::try_lock(path);
  ASSERT_TRUE(first);
  EXPECT_FALSE(BlobLock::try_lock(path));
  first.reset();
  EXPECT_TRUE(BlobLock::try_lock(path));
  EXPECT_TRUE(std::filesystem::exists(path));
  expect_error(ErrorCode::kNotFound, {"none"}, [&] {
    BlobLock::try_lock(dir.path() / "none/x.lock");
  });
}

}  // namespace
}  // namespace saker::hub
