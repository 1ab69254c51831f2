// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/http/web_address.h"

#include "saker/base/error.h"
#include "saker/hub/remote_files.h"

#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

namespace saker::hub {
namespace {

using testing::expect_error;

TEST(WebAddress, Origins) {
  EXPECT_EQ(origin_of("https://Hub.co/a"), (Origin{"https", "hub.co", "443"}));
  EXPECT_EQ(origin_of("https://hub.co:443"), origin_of("https://hub.co/x?y"));
  EXPECT_NE(origin_of("http://hub.co"), origin_of("https://hub.co"));
  EXPECT_NE(origin_of("http://hub.co:81"), origin_of("http://hub.co"));
  EXPECT_NE(origin_of("https://hub.co.other.com"), origin_of("https://hub.co"));
  for (const std::string_view text :
       {"", "hub.co", "ftp://hub.co", "file:///etc/passwd", "https://me@hub.co/"}) {
    EXPECT_EQ(origin_of(text), std::nullopt) << text;
  }
}

TEST(WebAddress, Locations) {
  const std::string base = "https://hub.co/a/b?c";
  EXPECT_EQ(resolve_location(base, "/x"), "https://hub.co/x");
  EXPECT_EQ(resolve_location(base, "https://other.co/y?z=1"), "https://other.co/y?z=1");
  EXPECT_EQ(resolve_location(base, "//other.co/y"), "https://other.co/y");
  EXPECT_EQ(resolve_location(base, "file:///etc/passwd"), std::nullopt);
  EXPECT_EQ(resolve_location(base, "https://me:you@other.co/"), std::nullopt);
}

TEST(WebAddress, PathsBelow) {
  EXPECT_EQ(path_below("https://hub.co", "https://Hub.co:443/a?b=%2F"), "/a?b=%2F");
  EXPECT_EQ(path_below("HTTPS://HUB.co:443/x/", "https://hub.co/x/a"), "/a");
  for (const std::string_view text :
       {"http://hub.co/x/a",
        "https://hub.co:444/x/a",
        "https://hub.co.other.com/x/a",
        "https://hub.co/xa",
        "https://hub.co/x/../a",
        "https://me@hub.co/x/a"}) {
    EXPECT_EQ(path_below("https://hub.co/x", text), std::nullopt) << text;
  }
}

TEST(WebAddress, UsersAreNotShown) {
  EXPECT_EQ(without_user("https://hub.co/a"), "https://hub.co/a");
  EXPECT_EQ(without_user("https://me:a/b@c@hub.co/x"), "https://***@hub.co/x");
  EXPECT_EQ(without_user("me:you://@hub.co"), "***@hub.co");
  EXPECT_EQ(without_user("me:you@hub.co"), "***@hub.co");
}

TEST(WebAddress, Encoding) {
  EXPECT_EQ(percent_encode("refs/pr/1 ü%"), "refs%2Fpr%2F1%20%C3%BC%25");
  EXPECT_EQ(
      file_address("org/name", "c0", "a b/c#d.json"), "/org/name/resolve/c0/a%20b/c%23d.json"
  );
}

TEST(RemoteFiles, Lists) {
  const std::string sha1(40, 'a');
  const std::string sha256(64, 'b');
  const auto files = parse_file_list(
      R"([{"type": "directory", "path": "x", "oid": "..", "size": 0},
          {"type": "file", "path": "a.json", "oid": ")" +
          sha1 + R"(", "size": 5},
          {"type": "file", "path": "b", "oid": ")" +
          sha1 + R"(", "size": 7, "lfs": {"oid": ")" + sha256 +
          R"(", "size": 7, "pointerSize": 1}, "xetHash": "x"}])",
      "org/name"
  );
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0], (RemoteFile{"a.json", 5, sha1, DigestKind::kGitBlob}));
  EXPECT_EQ(files[1], (RemoteFile{"b", 7, sha256, DigestKind::kSha256}));
  for (const char* text :
       {"", "{}", R"([{"type": "file"}])", R"([{"type": "file", "path": "a", "size": 1, "lfs": 5}])"
       }) {
    SCOPED_TRACE(text);
    expect_error(ErrorCode::kCorruptData, {"org/name"}, [&] { parse_file_list(text, "org/name"); });
  }
}

}  // namespace
}  // namespace saker::hub
