// SPDX-License-Identifier: Apache-2.0
#include "saker/base/nearest.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saker {
namespace {

constexpr std::size_t kLongestName = 64;

// Edit distance of `a` and `b`: additions, omissions, replacements and swaps of neighbours.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before;
  std::vector<std::size_t> last(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    last[j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t> row(b.size() + 1, i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before = std::move(last);
    last = std::move(row);
  }
  return last.back();
}

std::string_view without_dashes(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
  return name;
}

}  // namespace

std::optional<std::string> nearest(
    std::string_view typed, std::span<const std::string> candidates
) {
  const std::string_view bare = without_dashes(typed);
  if (bare.size() < 2 || bare.size() > kLongestName) {
    return std::nullopt;  // One letter is close to every short word.
  }
  std::optional<std::string> best;
  std::size_t least = 1 + std::max<std::size_t>(1, bare.size() / 3);
  for (const std::string& candidate : candidates) {
    const std::string_view name = without_dashes(candidate);
    if (name.size() < 2) {
      continue;
    }
    const std::size_t distance = name.starts_with(bare) ? 1 : edits(bare, name);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace saker
