// SPDX-License-Identifier: Apache-2.0
// Random operations on the kinds of one sequence beside lists that keep all ids.
#include "tests/caches/property.h"

#include "saker/caches/arrays.h"
#include "saker/caches/cache_list.h"
#include "saker/caches/kv.h"
#include "saker/caches/rotating.h"

#include "tests/caches/token_rows.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace saker::caches {
namespace {

constexpr int kLongest = 700;  // Rows after which a script starts again.

// Kinds of one sequence: what `held` says must be visible, oldest first.
struct Script {
  std::function<std::unique_ptr<Cache>()> make;
  // After `count` new rows, or 0; `held` is what is held already.
  std::function<void(Ids& held, int count)> bound;
  int bound_of_trim;  // No trim from this offset on.
  bool ordered;       // Whether rows lie in time order.
  int width;
};

class Runner {
 public:
  explicit Runner(const Script& script) : script_(script) { restart(); }

  void run(int count = steps()) {
    for (int i = 0; i < count && !::testing::Test::HasFailure(); ++i) {
      step();
    }
  }

 private:
  void restart() {
    cache_ = script_.make();
    held_.clear();
    offset_ = 0;
  }

  void step() {
    const int choice = draw_(0, 99);
    if (choice < 70) {
      update(choice < 45 ? 1 : draw_(2, 24));
    } else if (choice < 85) {
      trim(draw_(0, 6));
    } else if (choice < 90) {
      cache_ = replaced(*cache_, draw_);
    } else if (choice < 92) {
      refuse_bad_values(*cache_);
    } else if (choice < 94) {
      cache_->materialize();
    } else if (auto* chunked = dynamic_cast<ChunkedKVCache*>(cache_.get())) {
      chunked->maybe_trim_front();
      script_.bound(held_, 0);
    }
    check();
    if (offset_ > kLongest) {
      restart();
    }
  }

  void update(int count) {
    const Ids ids = numbers(next_, count);
    // Quantized ids stay below 256, and all ids exact.
    next_ = (next_ + count) % 200;
    const int rows = static_cast<int>(ids.size());
    const auto keys = mx::broadcast_to(token_rows(ids), {1, 1, rows, script_.width});
    const auto seen = cache_->update(keys, mx::negative(keys));
    script_.bound(held_, count);
    held_.insert(held_.end(), ids.begin(), ids.end());
    offset_ += count;
    compare(seen.keys, 1);
    compare(seen.values, -1);
  }

  void trim(int count) {
    const bool possible = offset_ < script_.bound_of_trim;
    EXPECT_EQ(cache_->is_trimmable(), possible);
    const int expected = possible ? std::min(count, static_cast<int>(held_.size())) : 0;
    EXPECT_EQ(cache_->trim(count), expected);
    held_.resize(held_.size() - static_cast<std::size_t>(expected));
    offset_ -= expected;
  }

  void compare(const mx::array& rows, int sign) {
    Ids ids = ids_of(mx::round(rows));
    for (int& id : ids) {
      id *= sign;
    }
    Ids expected = held_;
    if (!script_.ordered) {
      std::ranges::sort(ids);
      std::ranges::sort(expected);
    }
    ASSERT_EQ(ids, expected);
  }

  void check() {
    EXPECT_EQ(cache_->offset(), offset_);
    const auto state = cache_->state();
    ASSERT_EQ(state.empty(), held_.empty());
    if (!state.empty()) {
      ASSERT_EQ(state[0].shape(2), static_cast<int>(held_.size()));
    }
    EXPECT_GE(cache_->nbytes(), held_.size());
    if (const auto* ring = dynamic_cast<RotatingKVCache*>(cache_.get()); ring && !held_.empty()) {
      ASSERT_EQ(ids_of(ring->in_time_order()->keys), held_);
    }
  }

  Script script_;
  Draw draw_;
  std::unique_ptr<Cache> cache_;
  Ids held_;
  int offset_ = 0;
  int next_ = 0;
};

// Drops the oldest rows after the first `keep`.
void drop_oldest(Ids& held, int keep, int limit) {
  if (static_cast<int>(held.size()) > limit) {
    const auto surplus = static_cast<std::ptrdiff_t>(held.size()) - limit;
    held.erase(held.begin() + keep, held.begin() + keep + surplus);
  }
}

// One row leaves max_size rows, several leave max_size - 1 before them.
std::function<void(Ids&, int)> ring_bound(int max_size, int keep) {
  return [=](Ids& held, int count) {
    if (count > 0) {
      drop_oldest(held, keep, max_size - 1);
    }
  };
}

void all_rows(Ids& /*held*/, int /*count*/) {}

TEST(CachesProperty, KVCache) {
  Runner({[] { return std::make_unique<KVCache>(); }, all_rows, INT32_MAX, true, 1}).run();
}

TEST(CachesProperty, ChunkedKVCache) {
  const auto front = [](Ids& held, int count) {
    if (count == 0) {
      drop_oldest(held, 0, 9);
    }
  };
  Runner({[] { return std::make_unique<ChunkedKVCache>(9); }, front, INT32_MAX, true, 1}).run();
}

TEST(CachesProperty, QuantizedKVCache) {
  const auto make = [] { return std::make_unique<QuantizedKVCache>(Quantization{32, 8}); };
  Runner({make, all_rows, INT32_MAX, true, 32}).run();
}

TEST(CachesProperty, RotatingKVCache) {
  for (const auto& [max_size, keep] : {std::pair(8, 4), std::pair(5, 0), std::pair(300, 2)}) {
    const int size = max_size;
    const int kept = keep;
    const auto make = [=] { return std::make_unique<RotatingKVCache>(size, kept); };
    Runner({make, ring_bound(size, kept), size, false, 1}).run(steps() / 3 + 1);
  }
}

TEST(CachesProperty, QuantizedRotatingKVCache) {
  const auto make = [] {
    return std::make_unique<QuantizedRotatingKVCache>(11, 3, Quantization{32, 8});
  };
  Runner({make, ring_bound(11, 3), 11, false, 32}).run();
}

// Random operations on slots of one column beside lists of its values.
class Slots {
 public:
  void run(int count = steps()) {
    for (int i = 0; i < count && !::testing::Test::HasFailure(); ++i) {
      step();
      check();
    }
  }

 private:
  using Columns = std::vector<std::optional<Ids>>;  // Per slot a value for each batch row.

  void step() {
    const int choice = draw_(0, 9);
    const bool is_set = !cache_->state().empty();
    if (choice < 4) {
      set(*cache_, columns_, batch_);
    } else if (choice < 6 && is_set) {
      filter();
    } else if (choice < 7 && batch_ < 5 && is_set) {
      extend();
    } else if (choice < 8) {
      auto other = replaced(*cache_, draw_);
      cache_.reset(dynamic_cast<ArraysCache*>(other.release()));
    } else if (choice < 9) {
      refuse_bad_values(*cache_);
    }
  }

  void set(ArraysCache& cache, Columns& columns, int rows) {
    const auto slot = static_cast<std::size_t>(draw_(0, 2));
    const Ids ids = numbers(next_++ % 1000, rows);
    cache.set(slot, mx::astype(mx::array(ids.data(), {rows}, mx::int32), mx::float32));
    columns[slot] = ids;
  }

  void filter() {
    const Ids kept = {draw_(0, batch_ - 1), draw_(0, batch_ - 1)};
    cache_->filter(kept);
    for (auto& column : columns_) {
      if (column) {
        const Ids old = *column;
        column = {old[static_cast<std::size_t>(kept[0])], old[static_cast<std::size_t>(kept[1])]};
      }
    }
    batch_ = 2;
  }

  void extend() {
    ArraysCache other(3);
    Columns more(3);
    set(other, more, 2);
    cache_->extend(other);
    for (std::size_t slot = 0; slot < 3; ++slot) {
      if (columns_[slot] || more[slot]) {
        Ids joined = columns_[slot].value_or(Ids(static_cast<std::size_t>(batch_)));
        const Ids second = more[slot].value_or(Ids(2));
        joined.insert(joined.end(), second.begin(), second.end());
        columns_[slot] = joined;
      }
    }
    batch_ += 2;
  }

  void check() const {
    for (std::size_t slot = 0; slot < 3; ++slot) {
      std::optional<Ids> found;
      if (const auto& array = cache_->get(slot)) {
        const auto values = floats_of(*array);
        found = Ids(values.begin(), values.end());
      }
      ASSERT_EQ(found, columns_[slot]);
    }
  }

  Draw draw_;
  std::unique_ptr<ArraysCache> cache_ = std::make_unique<ArraysCache>(3);
  Columns columns_ = Columns(3);
  int batch_ = 1;
  int next_ = 0;
};

TEST(CachesProperty, ArraysCache) {
  Slots().run();
}

TEST(CachesProperty, CacheList) {
  Draw draw;
  const auto make = [] {
    std::vector<std::shared_ptr<Cache>> inner;
    inner.push_back(std::make_unique<RotatingKVCache>(20, 2));
    std::vector<std::shared_ptr<Cache>> outer;
    outer.push_back(std::make_unique<KVCache>());
    outer.push_back(std::make_unique<CacheList>(std::move(inner)));
    return std::make_unique<CacheList>(std::move(outer));
  };
  auto list = make();
  Ids all;
  for (int i = 0; i < steps() && !HasFailure(); ++i) {
    const int choice = draw(0, 9);
    if (choice < 6) {
      const Ids ids = numbers(static_cast<int>(all.size()), choice < 4 ? 1 : draw(2, 9));
      append((*list)[0], ids);
      append(dynamic_cast<CacheList&>((*list)[1])[0], ids);
      all.insert(all.end(), ids.begin(), ids.end());
    } else if (choice < 8) {
      const int count = draw(0, 4);
      const int expected = all.size() < 20 ? std::min(count, static_cast<int>(all.size())) : 0;
      ASSERT_EQ(list->trim(count), expected);
      all.resize(all.size() - static_cast<std::size_t>(expected));
    } else {
      auto other = replaced(*list, draw);
      list.reset(dynamic_cast<CacheList*>(other.release()));
    }
    ASSERT_EQ(list->offset(), std::ssize(all));
    if (!all.empty()) {
      ASSERT_EQ(ids_of(list->state()[0]), all);
    }
    if (all.size() > 200) {
      list = make();
      all.clear();
    }
  }
}

}  // namespace
}  // namespace saker::caches
