// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/verify.h"

#include "saker/base/error.h"
#include "saker/hub/digest.h"
#include "saker/hub/repo_cache.h"

#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

namespace saker::hub {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;
using testing::TemporaryDir;

// NOLINTNEXTLINE(readability-identifier-naming)
const std::string kOld(40, 'a');
// NOLINTNEXTLINE(readability-identifier-naming)
const std::string kNew(40, 'b');
const ModelName kName{"org/name", ""};  // NOLINT(readability-identifier-naming)

std::string digest_of(DigestKind kind, std::string_view text) {
  Digest digest(kind, text.size());
  digest.add(std::as_bytes(std::span(text)));
  return digest.finish();
}

class VerifyTest : public ::testing::Test {
 protected:
  fs::path add(std::string_view commit, std::string_view path, const std::string& content) {
    repo_.make_folders();
    const auto kind = content.size() > 100 ? DigestKind::kSha256 : DigestKind::kGitBlob;
    const std::string digest = digest_of(kind, content);
    dir_.write("models--org--name/blobs/" + digest, content);
    repo_.link(commit, path, digest);
    return repo_.blob(digest);
  }

  void SetUp() override {
    config_ = add(kOld, "config.json", "{}");
    weights_ = add(kOld, "model.safetensors", std::string(3'000'000, 'w'));
    add(kNew, "config.json", "{} ");
    add(kNew, "part/model.safetensors", std::string(3'000'000, 'w'));
    repo_.write_ref("main", kNew);
  }

  static void flip(const fs::path& path, std::streamoff at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(at);
    file.put('!');
  }

  TemporaryDir dir_;
  RepoCache repo_{dir_.path(), "org/name"};
  fs::path config_;
  fs::path weights_;
};

TEST_F(VerifyTest, WholeModels) {
  const VerifyReport all = verify(dir_.path(), kName);
  EXPECT_EQ(all.commits, (std::vector{kOld, kNew}));
  EXPECT_EQ(all.files, 3U);
  EXPECT_EQ(all.bytes, 3'000'005U);
  EXPECT_TRUE(all.damaged.empty());
  EXPECT_TRUE(all.unknown.empty());
  const VerifyReport one = verify(dir_.path(), {"org/name", kOld});
  EXPECT_EQ(one.commits, std::vector{kOld});
  EXPECT_EQ(one.files, 2U);
}

// Of the right size, which is all that a pull looks at.
TEST_F(VerifyTest, DamagedBlobsAreFoundAndTakenAway) {
  flip(weights_, 2'999'999);
  flip(config_, 0);
  const VerifyReport report = verify(dir_.path(), kName);
  ASSERT_EQ(report.damaged.size(), 2U);
  EXPECT_EQ(report.damaged[0].path, "config.json");
  EXPECT_EQ(report.damaged[0].blob, config_);
  EXPECT_TRUE(report.damaged[0].reason.starts_with("its SHA-1")) << report.damaged[0].reason;
  EXPECT_EQ(report.damaged[1].blob, weights_);
  EXPECT_TRUE(report.damaged[1].reason.starts_with("its SHA-256")) << report.damaged[1].reason;
  EXPECT_EQ(verify(dir_.path(), {"org/name", "main"}).damaged.size(), 1U);
  remove_damaged(report);
  EXPECT_FALSE(fs::exists(weights_));
  EXPECT_FALSE(fs::exists(config_));
  const VerifyReport again = verify(dir_.path(), kName);
  ASSERT_EQ(again.damaged.size(), 2U);
  EXPECT_EQ(again.damaged[1].reason, "is missing");
  remove_damaged(again);
}

TEST_F(VerifyTest, CutEmptyAndReplacedBlobs) {
  fs::resize_file(weights_, 2'999'999);
  EXPECT_EQ(verify(dir_.path(), kName).damaged.size(), 1U);
  fs::resize_file(weights_, 0);
  EXPECT_EQ(verify(dir_.path(), kName).damaged.size(), 1U);
  fs::remove(weights_);
  fs::create_directory(weights_);
  const VerifyReport report = verify(dir_.path(), kName);
  ASSERT_EQ(report.damaged.size(), 1U);
  EXPECT_NE(report.damaged[0].reason.find("is not a regular file"), std::string::npos);
}

TEST_F(VerifyTest, FilesOfOthersHaveNoDigest) {
  dir_.write("models--org--name/snapshots/" + kNew + "/notes.txt", "mine");
  fs::create_symlink("/etc/hostname", repo_.snapshots() / kNew / "outside");
  const VerifyReport report = verify(dir_.path(), kName);
  EXPECT_EQ(report.unknown, (std::vector<std::string>{"notes.txt", "outside"}));
  EXPECT_EQ(report.files, 3U);
  EXPECT_TRUE(report.damaged.empty());
}

TEST_F(VerifyTest, RefusesWhatIsNotThere) {
  expect_error(ErrorCode::kNotFound, {"'org/other'", "hub cache"}, [&] {
    verify(dir_.path(), {"org/other", ""});
  });
  expect_error(ErrorCode::kNotFound, {"'org/name@v9'"}, [&] {
    verify(dir_.path(), {"org/name", "v9"});
  });
}

TEST_F(VerifyTest, StopsWhenAsked) {
  const fs::path blob = repo_.blob(std::string(64, '0'));
  std::ofstream(blob).close();
  fs::resize_file(blob, std::uintmax_t{1} << 40);  // A hole, which takes minutes to read.
  repo_.link(kNew, "model-2.safetensors", std::string(64, '0'));
  std::stop_source stop;
  VerifyOptions options;
  options.stop = stop.get_token();
  options.progress = [&](std::uintmax_t done, std::uintmax_t total) {
    EXPECT_LE(done, total);
    stop.request_stop();
  };
  expect_error(ErrorCode::kCancelled, {"interrupted"}, [&] {
    verify(dir_.path(), kName, options);
  });
}

}  // namespace
}  // namespace saker::hub
