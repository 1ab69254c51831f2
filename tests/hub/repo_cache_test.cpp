// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/repo_cache.h"

#include "saker/base/mapped_file.h"

#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>

namespace saker::hub {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryDir;

const std::string kCommit(40, 'c');
const std::string kOther = std::string(39, 'c') + "d";
const std::string kDigest(64, '1');

TEST(RepoCache, Names) {
  EXPECT_EQ(folder_of_repo("org/name"), "models--org--name");
  EXPECT_EQ(repo_of_folder("models--org--na-me"), "org/na-me");
  EXPECT_EQ(repo_of_folder("models--gpt2"), "gpt2");
  for (const char* folder :
       {"datasets--a--b", "models--", "models--a--b--c", ".locks", "models--..--a"}) {
    EXPECT_EQ(repo_of_folder(folder), std::nullopt) << folder;
  }
  const RepoCache repo("/cache/../cache", "org/name");
  EXPECT_EQ(repo.path(), "/cache/models--org--name");
  EXPECT_EQ(repo.part("ab"), "/cache/models--org--name/blobs/ab.incomplete");
  EXPECT_EQ(repo.lock("ab"), "/cache/.locks/models--org--name/ab.lock");
}

TEST(RepoCache, LinksAndRefs) {
  const TemporaryDir dir;
  const RepoCache repo(dir.path(), "org/name");
  repo.make_folders();
  dir.write("models--org--name/blobs/" + kDigest, "bytes");
  repo.link(kCommit, "config.json", kDigest);
  repo.link(kCommit, "draft/config.json", kDigest);
  repo.link(kCommit, "config.json", kDigest);
  const fs::path snapshot = repo.snapshots() / kCommit;
  EXPECT_EQ(fs::read_symlink(snapshot / "config.json"), "../../blobs/" + kDigest);
  EXPECT_EQ(fs::read_symlink(snapshot / "draft/config.json"), "../../../blobs/" + kDigest);
  EXPECT_EQ(read_file(snapshot / "draft/config.json", 100), "bytes");
  repo.write_ref("refs/pr/1", kCommit);
  repo.write_ref("main", kOther);
  repo.write_ref("main", kCommit);
  // As huggingface_hub writes it: without a line break.
  EXPECT_EQ(read_file(repo.refs() / "main", 100), kCommit);
  EXPECT_EQ(repo.read_ref("refs/pr/1"), kCommit);
  EXPECT_EQ(repo.read_ref("refs/pr"), std::nullopt);
  // A link over something else.
  fs::remove(snapshot / "config.json");
  dir.write("models--org--name/snapshots/" + kCommit + "/config.json", "other");
  repo.link(kCommit, "config.json", kDigest);
  EXPECT_EQ(read_file(snapshot / "config.json", 100), "bytes");
  // Nothing temporary stays.
  EXPECT_EQ(std::distance(fs::directory_iterator(repo.path() / "blobs"), {}), 1);
}

// Processes of one id, in containers, share a cache.
TEST(RepoCache, MeetsNoNamesOfOthers) {
  const TemporaryDir dir;
  const RepoCache repo(dir.path(), "org/name");
  repo.make_folders();
  for (int number = 1; number < 20; ++number) {
    const std::string name = ".blobs-" + std::to_string(number);
    const fs::path victim = dir.write(name, "another's");
    fs::create_symlink(
        victim,
        repo.path() / "blobs" /
            ("." + std::to_string(::getpid()) + "-" + std::to_string(number) + ".tmp")
    );
  }
  repo.link(kCommit, "config.json", kDigest);
  repo.write_ref("main", kCommit);
  EXPECT_EQ(repo.read_ref("main"), kCommit);
  EXPECT_EQ(read_file(dir.path() / ".blobs-1", 100), "another's");
  EXPECT_EQ(read_file(dir.path() / ".blobs-2", 100), "another's");
}

TEST(RepoCache, FindsRevisions) {
  const TemporaryDir dir;
  const RepoCache repo(dir.path(), "org/name");
  EXPECT_EQ(repo.find_snapshot(""), std::nullopt);
  fs::create_directories(repo.snapshots() / kCommit);
  EXPECT_EQ(repo.find_snapshot(""), repo.snapshots() / kCommit);
  fs::create_directories(repo.snapshots() / kOther);
  EXPECT_EQ(repo.find_snapshot(""), std::nullopt);
  fs::create_directories(repo.refs());
  repo.make_folders();
  repo.write_ref("v1", kOther);
  EXPECT_EQ(repo.find_snapshot("v1"), repo.snapshots() / kOther);
  EXPECT_EQ(repo.find_snapshot(kCommit), repo.snapshots() / kCommit);
  EXPECT_EQ(repo.find_snapshot("v2"), std::nullopt);
  // Both begin so.
  EXPECT_EQ(repo.find_snapshot("ccccccccc"), std::nullopt);
  const std::string third(40, 'e');
  fs::create_directories(repo.snapshots() / third);
  EXPECT_EQ(repo.find_snapshot("eeeeeee"), repo.snapshots() / third);
  EXPECT_EQ(repo.find_snapshot("eee"), std::nullopt);
}

}  // namespace
}  // namespace saker::hub
