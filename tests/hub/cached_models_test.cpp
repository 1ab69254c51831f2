// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/cached_models.h"

#include "saker/base/error.h"
#include "saker/hub/blob_lock.h"
#include "saker/hub/repo_cache.h"

#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
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

class CachedModelsTest : public ::testing::Test {
 protected:
  void add(
      std::string_view commit, std::string_view path, std::string_view digest, std::size_t size
  ) {
    repo_.make_folders();
    dir_.write("models--org--name/blobs/" + std::string(digest), std::string(size, 'x'));
    repo_.link(commit, path, digest);
  }

  // Two revisions that share a file.
  void add_two() {
    add(kOld, "config.json", "1", 10);
    add(kOld, "model.safetensors", "2", 1000);
    add(kNew, "config.json", "3", 20);
    add(kNew, "draft/model.safetensors", "2", 1000);
    repo_.write_ref("v1", kOld);
    repo_.write_ref("main", kNew);
    repo_.write_ref("refs/pr/1", kNew);
  }

  TemporaryDir dir_;
  RepoCache repo_{dir_.path(), "org/name"};
};

TEST_F(CachedModelsTest, Lists) {
  EXPECT_TRUE(cached_models(dir_.path() / "none").empty());
  add_two();
  dir_.write("models--org--name/blobs/4.incomplete", "12345");
  dir_.write("models--solo/refs/main", "x");
  dir_.write("datasets--a--b/refs/main", "x");
  dir_.write("models--file", "x");
  const auto models = cached_models(dir_.path());
  ASSERT_EQ(models.size(), 2U);
  EXPECT_EQ(models[0].repo, "org/name");
  EXPECT_EQ(models[0].bytes, 1030U);
  EXPECT_EQ(models[0].incomplete_bytes, 5U);
  ASSERT_EQ(models[0].revisions.size(), 2U);
  const auto& newer = models[0].revisions[models[0].revisions[0].commit == kNew ? 0 : 1];
  EXPECT_EQ(newer.commit, kNew);
  EXPECT_EQ(newer.refs, (std::vector<std::string>{"main", "refs/pr/1"}));
  EXPECT_EQ(newer.files, 2U);
  EXPECT_EQ(newer.bytes, 1020U);
  EXPECT_GT(newer.modified, 1'600'000'000);
  EXPECT_EQ(models[1].repo, "solo");
  EXPECT_TRUE(models[1].revisions.empty());
}

TEST_F(CachedModelsTest, RemovesARevisionAndKeepsSharedBlobs) {
  add_two();
  const Removal removal = plan_removal(dir_.path(), {"org/name", "v1"});
  EXPECT_FALSE(removal.whole);
  EXPECT_EQ(removal.bytes, 10U);
  ASSERT_EQ(removal.revisions.size(), 1U);
  EXPECT_EQ(removal.revisions[0].commit, kOld);
  remove(dir_.path(), removal);
  EXPECT_FALSE(fs::exists(repo_.snapshots() / kOld));
  EXPECT_FALSE(fs::exists(repo_.refs() / "v1"));
  EXPECT_FALSE(fs::exists(repo_.blob("1")));
  EXPECT_TRUE(fs::exists(repo_.snapshots() / kNew / "draft/model.safetensors"));
  EXPECT_TRUE(fs::exists(repo_.refs() / "main"));
  // The last one is the model.
  const Removal last = plan_removal(dir_.path(), {"org/name", kNew});
  EXPECT_TRUE(last.whole);
  EXPECT_EQ(last.bytes, 1020U);
  remove(dir_.path(), last);
  EXPECT_FALSE(fs::exists(repo_.path()));
  EXPECT_FALSE(fs::exists(repo_.locks()));
}

TEST_F(CachedModelsTest, RemovesAModel) {
  add_two();
  dir_.write("models--org--name/blobs/4.incomplete", "12345");
  const Removal removal = plan_removal(dir_.path(), {"org/name", ""});
  EXPECT_TRUE(removal.whole);
  EXPECT_EQ(removal.bytes, 1035U);
  remove(dir_.path(), removal);
  EXPECT_FALSE(fs::exists(repo_.path()));
  expect_error(ErrorCode::kNotFound, {"'org/name'"}, [&] {
    plan_removal(dir_.path(), {"org/name", ""});
  });
}

TEST_F(CachedModelsTest, RemovesOneGgufModel) {
  add(kOld, "x-Q8_0.gguf", "8", 1000);
  add(kOld, "x-F16-00001-of-00002.gguf", "16a", 300);
  add(kOld, "x-F16-00002-of-00002.gguf", "16b", 400);
  add(kNew, "y-Q8_0.gguf", "8", 1000);
  const auto models = cached_models(dir_.path());
  const auto& old = models[0].revisions[models[0].revisions[0].commit == kOld ? 0 : 1];
  ASSERT_EQ(old.ggufs.size(), 2U);
  EXPECT_EQ(old.ggufs[0].label, "F16");
  EXPECT_EQ(old.ggufs[0].bytes, 700U);
  EXPECT_FALSE(old.has_safetensors);
  const Removal parts = plan_removal(dir_.path(), {"org/name", "", "f16"});
  EXPECT_FALSE(parts.whole);
  EXPECT_EQ(parts.bytes, 700U);
  remove(dir_.path(), parts);
  EXPECT_FALSE(fs::exists(repo_.blob("16b")));
  EXPECT_TRUE(fs::exists(repo_.snapshots() / kOld / "x-Q8_0.gguf"));
  // The last one of its revision takes that along; another revision's blob stays.
  const Removal last = plan_removal(dir_.path(), {"org/name", kOld, "Q8_0"});
  EXPECT_EQ(last.bytes, 0U);
  remove(dir_.path(), last);
  EXPECT_FALSE(fs::exists(repo_.snapshots() / kOld));
  EXPECT_TRUE(fs::exists(repo_.snapshots() / kNew / "y-Q8_0.gguf"));
  expect_error(ErrorCode::kNotFound, {"org/name:F16", ":Q8_0"}, [&] {
    plan_removal(dir_.path(), {"org/name", "", "F16"});
  });
}

TEST_F(CachedModelsTest, ModelsOnTheirWayStay) {
  add_two();
  dir_.write("models--org--name/blobs/4.incomplete", "12345");
  std::optional<BlobLock> lock = BlobLock::try_lock(repo_.lock("4"));
  ASSERT_TRUE(lock);
  for (const char* revision : {"", "v1"}) {
    expect_error(ErrorCode::kCapacity, {"'org/name' is being fetched"}, [&] {
      plan_removal(dir_.path(), {"org/name", revision});
    });
  }
  lock.reset();
  EXPECT_TRUE(plan_removal(dir_.path(), {"org/name", ""}).whole);
}

TEST_F(CachedModelsTest, LinksOutOfTheModelStay) {
  const TemporaryDir elsewhere;
  const auto precious = elsewhere.write("precious", "x");
  add_two();
  fs::create_symlink(precious, repo_.snapshots() / kOld / "extra");
  fs::create_directory_symlink(elsewhere.path(), repo_.snapshots() / kOld / "folder");
  fs::create_symlink(
      "../../../models--org--name/blobs/../refs/main", repo_.snapshots() / kOld / "up"
  );
  remove(dir_.path(), plan_removal(dir_.path(), {"org/name", "v1"}));
  EXPECT_TRUE(fs::exists(precious));
  EXPECT_TRUE(fs::exists(repo_.refs() / "main"));
  expect_error(ErrorCode::kNotFound, {"no revision 'v1'"}, [&] {
    plan_removal(dir_.path(), {"org/name", "v1"});
  });
}

}  // namespace
}  // namespace saker::hub
