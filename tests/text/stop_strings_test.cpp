// SPDX-License-Identifier: Apache-2.0
#include "saker/text/stop_strings.h"

#include "tests/support/expect_error.h"
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace saker::text {
namespace {

struct Shown {
  std::string text;
  bool stopped = false;

  bool operator==(const Shown&) const = default;
};

Shown feed(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
  StopMatcher matcher(stops);
  Shown shown;
  for (const auto& piece : pieces) {
    const auto result = matcher.push(piece);
    shown.text += result.text;
    if (result.stopped) {
      EXPECT_EQ(matcher.flush(), "");
      return {shown.text, true};
    }
  }
  shown.text += matcher.flush();
  return shown;
}

// The rule in its plainest form: the first end of a stop string, the longest that ends there.
Shown by_search(const std::vector<std::string>& stops, const std::string& text) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::size_t longest = 0;
    for (const auto& stop : stops) {
      if (text.substr(0, end).ends_with(stop)) {
        longest = std::max(longest, stop.size());
      }
    }
    if (longest > 0) {
      return {text.substr(0, end - longest), true};
    }
  }
  return {text, false};
}

TEST(StopMatcher, CutsBeforeTheStopString) {
  EXPECT_EQ(feed({"END"}, {"one END two"}), (Shown{"one ", true}));
  EXPECT_EQ(feed({"END"}, {"one E", "N", "D two"}), (Shown{"one ", true}));
  EXPECT_EQ(feed({"END", "ne"}, {"one END"}), (Shown{"o", true}));
  EXPECT_EQ(feed({"\n\n"}, {"a\n", "b\n", "\nc"}), (Shown{"a\nb", true}));
}

TEST(StopMatcher, LosesNothingAtTheEnd) {
  EXPECT_EQ(feed({"END"}, {"one EN"}), (Shown{"one EN", false}));
  EXPECT_EQ(feed({"aab"}, {"a", "a", "a", "a"}), (Shown{"aaaa", false}));
  EXPECT_EQ(feed({}, {"any", "thing"}), (Shown{"anything", false}));
}

TEST(StopMatcher, HoldsBackOnlyWhatMayStop) {
  StopMatcher matcher({"</s>", "stop"});
  EXPECT_EQ(matcher.push("text </").text, "text ");
  EXPECT_EQ(matcher.push("x").text, "</x");
  EXPECT_EQ(matcher.push("ss").text, "s");
  EXPECT_EQ(matcher.push("tar").text, "star");
  EXPECT_EQ(matcher.flush(), "");
}

TEST(StopMatcher, NeverSplitsACharacter) {
  StopMatcher matcher({"日本"});
  EXPECT_EQ(matcher.push("今日").text, "今");
  EXPECT_EQ(matcher.push("は").text, "日は");
}

TEST(StopMatcher, RefusesStopStringsThatCannotMatch) {
  testing::expect_error(ErrorCode::kInvalidArgument, {"empty"}, [] { StopMatcher({"a", ""}); });
  testing::expect_error(ErrorCode::kInvalidArgument, {"stop string"}, [] {
    StopMatcher({"\xff"});
  });
  testing::expect_error(ErrorCode::kInvalidArgument, {"1048576"}, [] {
    StopMatcher({std::string(2'000'000, 'a')});
  });
}

RC_GTEST_PROP(StopMatcher, PiecesDoNotMatter, ()) {
  const auto letters = rc::gen::container<std::string>(rc::gen::elementOf(std::string("aab\n")));
  const auto stops = *rc::gen::container<std::vector<std::string>>(
      rc::gen::suchThat(letters, [](const std::string& s) { return !s.empty() && s.size() < 6; })
  );
  const auto pieces = *rc::gen::container<std::vector<std::string>>(letters);
  std::string text;
  for (const auto& piece : pieces) {
    text += piece;
  }
  RC_ASSERT(feed(stops, pieces) == by_search(stops, text));
}

}  // namespace
}  // namespace saker::text
