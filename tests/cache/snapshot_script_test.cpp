// SPDX-License-Identifier: Apache-2.0
// Long random scripts of everything a cache can do, beside a list that keeps all rows.
// SAKER_PROPERTY_STEPS sets their length.
#include "saker/cache/kv.h"
#include "saker/cache/window.h"

#include "tests/cache/rows.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace saker::cache {
namespace {

constexpr int kDefaultSteps = 20'000;
constexpr int kMaxRows = 400;

int step_count() {
  const char* steps = std::getenv("SAKER_PROPERTY_STEPS");
  return steps == nullptr ? kDefaultSteps : static_cast<int>(std::stod(steps));
}

struct Kind {
  std::string name;
  int recent = 0;  // 0: no bound.
  int keep = 0;
  int bits = kernels::kUnquantizedBits;  // Rows of equal elements are exact in codes too.

  std::unique_ptr<LayerCache> make() const {
    kernels::KvShape shape = test_shape();
    shape.bits = bits;
    if (recent == 0) {
      return std::make_unique<KVCache>(shape);
    }
    return std::make_unique<WindowCache>(shape, recent + keep, keep);
  }
};

using Rows = std::vector<int>;

// A snapshot and the rows it has to give back.
struct Saved {
  LayerSnapshotPtr rows;
  Rows list;           // All from position 0; the snapshot has the last ones.
  bool whole = false;  // Everything visible from its end is in it.
};

class Script {
 public:
  explicit Script(const Kind& kind) : kind_(kind), cache_(kind.make()) {}

  // How often a snapshot was restored.
  int restored() const { return restored_; }

  void step() {
    if (list_.size() > kMaxRows && !begun_) {
      cache_ = kind_.make();
      list_.clear();
    }
    switch (draw(0, 10)) {
      case 0:
      case 1:
      case 2:
        write();
        break;
      case 3:
        begin();
        break;
      case 4:
        finish();
        break;
      case 5:
        trim();
        break;
      case 6:
        save();
        break;
      case 7:
        cut_and_join();
        break;
      case 8:
        go_back();
        break;
      case 9:
        restore();
        break;
      default:
        cache_ = cache_->copy();
        list_ = committed();
        begun_.reset();
        break;
    }
    check();
  }

 private:
  int draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  Rows committed() const {
    return {
        list_.begin(), list_.begin() + static_cast<std::ptrdiff_t>(begun_.value_or(list_.size()))
    };
  }

  // What a reader at the end of `rows` sees.
  Rows visible(const Rows& rows) const {
    if (kind_.recent == 0) {
      return rows;
    }
    const auto size = static_cast<int>(rows.size());
    const int kept = std::min(kind_.keep, size);
    Rows result(rows.begin(), rows.begin() + kept);
    result.insert(result.end(), rows.begin() + std::max(kept, size - kind_.recent), rows.end());
    return result;
  }

  void check() const {
    ASSERT_EQ(cache_->offset(), static_cast<std::int64_t>(list_.size()));
    const auto view = cache_->view();
    ASSERT_EQ(view.has_value(), !committed().empty());
    ASSERT_TRUE(!view || same_rows(*view, visible(committed())));
  }

  void write() {
    const int count = draw(0, 3) == 0 ? draw(1, 150) : draw(1, 9);
    const Rows fresh = numbers(next_, count);
    next_ = (next_ + count) % (1 << 20);  // Exact in float32, an eighth too.
    const auto rows = numbered_rows(fresh);
    list_.insert(list_.end(), fresh.begin(), fresh.end());
    if (draw(0, 1) == 0) {
      cache_->update(rows.keys, rows.values);
      return;
    }
    const auto span = cache_->append(0, count);
    auto keys = mx::contiguous(mx::squeeze(rows.keys, 0));
    auto values = mx::contiguous(mx::squeeze(rows.values, 0));
    mx::eval(keys, values);
    span.store->write(span.first_position, keys, values);
  }

  void begin() {
    if (!begun_) {
      cache_->begin();
      begun_ = list_.size();
    }
  }

  void finish() {
    if (!begun_) {
      return;
    }
    int count = draw(0, static_cast<int>(list_.size() - *begun_));
    if (draw(0, 3) == 0) {
      count = 0;
      cache_->roll_back();
    } else {
      cache_->commit(count);
    }
    list_.resize(*begun_ + static_cast<std::size_t>(count));
    begun_.reset();
  }

  void trim() {
    if (!begun_) {
      list_.resize(list_.size() - static_cast<std::size_t>(cache_->trim(draw(0, 40))));
    }
  }

  void save() {
    const Rows list = committed();
    const int from = draw(0, 1) * draw(0, kMaxRows);
    auto rows = cache_->snapshot(from);
    ASSERT_EQ(rows != nullptr, from < static_cast<int>(list.size()));
    if (rows != nullptr) {
      saved_.push_back({std::move(rows), list, from == 0});
      if (saved_.size() > 6) {
        saved_.erase(saved_.begin());
      }
    }
  }

  void cut_and_join() {
    if (saved_.empty()) {
      return;
    }
    Saved& some = saved_[static_cast<std::size_t>(draw(0, static_cast<int>(saved_.size()) - 1))];
    const auto at = static_cast<int>(some.rows->first()) +
                    draw(0, static_cast<int>(some.rows->last() - some.rows->first()));
    const auto [parent, child] = split(some.rows, at);
    if (parent == nullptr || child == nullptr) {
      ASSERT_TRUE(parent == some.rows || child == some.rows);
      return;
    }
    switch (draw(0, 2)) {
      case 0:
        some = {merge(parent, child), some.list, some.whole};
        break;
      case 1:
        some = {parent, Rows(some.list.begin(), some.list.begin() + at), false};
        break;
      default:
        some = {child, some.list, false};
        break;
    }
  }

  void go_back() {
    if (begun_) {
      return;
    }
    const int target = draw(-1, static_cast<int>(list_.size()) + 1);
    const bool possible = target >= 0 && target <= static_cast<int>(list_.size());
    const bool done = cache_->restore(nullptr, target);
    ASSERT_TRUE(possible || !done);
    ASSERT_TRUE(done || !possible || (kind_.recent > 0 && target < static_cast<int>(list_.size())));
    if (done) {
      list_.resize(static_cast<std::size_t>(target));
    }
  }

  void restore() {
    if (begun_ || saved_.empty()) {
      return;
    }
    const Saved& some =
        saved_[static_cast<std::size_t>(draw(0, static_cast<int>(saved_.size()) - 1))];
    const auto first = static_cast<std::size_t>(some.rows->first());
    const auto last = static_cast<int>(some.rows->last());
    const int target = draw(0, 2) == 0 ? last : draw(0, last + 1);
    const auto reached = cache_->reach(*some.rows, target);
    const bool done = cache_->restore(some.rows.get(), target);
    ASSERT_EQ(done, target <= last && reached == target);
    const bool possible = list_.size() >= first && target <= last;
    ASSERT_TRUE(possible || !done);
    const bool certain = kind_.recent == 0 || (some.whole && target == last);
    ASSERT_TRUE(done || !possible || !certain);
    if (done) {
      list_.resize(first);
      list_.insert(
          list_.end(), some.list.begin() + static_cast<std::ptrdiff_t>(first), some.list.end()
      );
      list_.resize(static_cast<std::size_t>(target));
      ++restored_;
    }
  }

  Kind kind_;
  std::mt19937 random_{7};
  std::unique_ptr<LayerCache> cache_;
  Rows list_;
  std::optional<std::size_t> begun_;
  std::vector<Saved> saved_;
  int next_ = 0;
  int restored_ = 0;
};

class SnapshotScript : public ::testing::TestWithParam<Kind> {};

TEST_P(SnapshotScript, CachesAgreeWithAListOfAllRows) {
  Script script(GetParam());
  const int steps = step_count();
  for (int i = 0; i < steps; ++i) {
    script.step();
    ASSERT_FALSE(HasFatalFailure()) << "after " << i << " steps";
  }
  EXPECT_GT(script.restored(), steps / 100);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds,
    SnapshotScript,
    ::testing::Values(
        Kind{"KVCache"},
        Kind{"Rotating", 100},
        Kind{"RotatingSmall", 3},
        Kind{"RotatingKeep", 30, 4},
        Kind{"Quantized", 0, 0, 4},
        Kind{"QuantizedRotating", 100, 0, 8},
        Kind{"QuantizedRotatingKeep", 30, 4, 4}
    ),
    [](const auto& kind) { return kind.param.name; }
);

}  // namespace
}  // namespace saker::cache
