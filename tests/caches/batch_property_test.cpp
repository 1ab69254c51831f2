// SPDX-License-Identifier: Apache-2.0
// Random operations on the batch kinds beside lists that keep all ids of each batch row.
#include "saker/caches/batch.h"
#include "saker/caches/batch_rotating.h"

#include "tests/caches/property.h"
#include "tests/caches/token_rows.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace saker::caches {
namespace {

// Batches: one list of ids for each batch row, ids that rise within a row.
template <typename Kind>
class BatchRunner {
 public:
  explicit BatchRunner(int max_size) : max_size_(max_size) { restart(); }

  void run(int count = steps()) {
    for (int i = 0; i < count && !::testing::Test::HasFailure(); ++i) {
      step();
    }
  }

 private:
  using Rows = std::vector<Ids>;

  Kind make(const Ids& left_padding) const {
    if constexpr (std::is_same_v<Kind, BatchKVCache>) {
      return Kind(left_padding);
    } else {
      return Kind(max_size_, left_padding);
    }
  }

  void restart() {
    const int batch = draw_(1, 3);
    rows_.assign(static_cast<std::size_t>(batch), {});
    cache_ = std::make_unique<Kind>(make(Ids(static_cast<std::size_t>(batch))));
    prefill(*cache_, rows_);
  }

  Ids fresh(int count) {
    const Ids ids = numbers(next_, count);
    next_ += count;
    return ids;
  }

  // Prompts of different lengths, padded on either side.
  void prefill(Kind& cache, Rows& rows) {
    Ids lengths;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      lengths.push_back(draw_(1, 12));
    }
    const int longest = std::max(2, *std::ranges::max_element(lengths));
    const bool left = draw_(0, 1) == 0;
    Rows columns;
    Ids padding;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Ids ids = fresh(lengths[i]);
      padding.push_back(longest - lengths[i]);
      Ids column(static_cast<std::size_t>(longest), -1);
      std::ranges::copy(ids, column.begin() + (left ? padding.back() : 0));
      columns.push_back(column);
      rows[i].insert(rows[i].end(), ids.begin(), ids.end());
    }
    if (left) {
      cache.prepare({.left = padding, .right = {}, .lengths = {}});
    } else {
      cache.prepare({.left = {}, .right = padding, .lengths = lengths});
    }
    append_batch(cache, columns);
    cache.finalize();
  }

  void step() {
    const int choice = draw_(0, 99);
    if (choice < 60) {
      update(choice < 40 ? 1 : draw_(2, 6));
    } else if (choice < 68) {
      trim(draw_(0, 2));
    } else if (choice < 76) {
      filter();
    } else if (choice < 84 && rows_.size() < 5) {
      Rows more(static_cast<std::size_t>(draw_(1, 2)));
      Kind other = make(Ids(more.size()));
      prefill(other, more);
      cache_->extend(other);
      rows_.insert(rows_.end(), more.begin(), more.end());
    } else if (choice < 88) {
      merge();
    } else if (choice < 92) {
      auto next = replaced(*cache_, draw_);
      cache_.reset(dynamic_cast<Kind*>(next.release()));
    } else if (choice < 94) {
      refuse_bad_values(*cache_);
    }
    check();
    if (cache_->offset() > 120) {
      restart();
    }
  }

  void update(int count) {
    Rows columns;
    for (Ids& row : rows_) {
      columns.push_back(fresh(count));
      row.insert(row.end(), columns.back().begin(), columns.back().end());
    }
    const auto mask = cache_->make_mask(count);
    const Rows seen = append_batch(*cache_, columns);
    const auto bits = floats_of(*mask.array);
    const std::size_t width = seen.front().size();
    ASSERT_EQ(mask.array->shape(-1), static_cast<int>(width));
    for (std::size_t b = 0; b < rows_.size(); ++b) {
      for (int i = 0; i < count; ++i) {
        const std::size_t line = (b * static_cast<std::size_t>(count) + i) * width;
        const Ids all(rows_[b].begin(), rows_[b].end() - (count - 1 - i));
        ASSERT_EQ(visible(std::span(bits).subspan(line, width), seen[b]), newest(all));
      }
    }
  }

  // The ids whose bit is set, sorted.
  static Ids visible(std::span<const float> bits, const Ids& ids) {
    Ids result;
    for (std::size_t k = 0; k < ids.size(); ++k) {
      if (bits[k] != 0) {
        result.push_back(ids[k]);
      }
    }
    std::ranges::sort(result);
    return result;
  }

  Ids newest(const Ids& ids) const {
    const auto count = std::min<std::ptrdiff_t>(max_size_, std::ssize(ids));
    return {ids.end() - count, ids.end()};
  }

  void trim(int count) {
    const auto shortest = std::ranges::min(rows_, {}, &Ids::size).size();
    if (static_cast<std::size_t>(count) >= shortest || !cache_->is_trimmable()) {
      return;
    }
    ASSERT_EQ(cache_->trim(count), count);
    for (Ids& row : rows_) {
      row.resize(row.size() - static_cast<std::size_t>(count));
    }
  }

  void filter() {
    Ids kept;
    for (int i = 0; i < static_cast<int>(rows_.size()); ++i) {
      if (draw_(0, 2) > 0) {
        kept.insert(kept.begin() + draw_(0, static_cast<int>(kept.size())), i);
      }
    }
    if (kept.empty()) {
      return;
    }
    cache_->filter(kept);
    Rows rows;
    for (const int index : kept) {
      rows.push_back(rows_[static_cast<std::size_t>(index)]);
    }
    rows_ = rows;
  }

  // Taken apart and put together again.
  void merge() {
    using Single = decltype(cache_->extract(0));
    std::vector<Single> singles;
    singles.reserve(rows_.size());
    for (int i = 0; i < static_cast<int>(rows_.size()); ++i) {
      singles.push_back(cache_->extract(i));
    }
    std::vector<const Single*> pointers;
    pointers.reserve(singles.size());
    for (const Single& single : singles) {
      pointers.push_back(&single);
    }
    *cache_ = Kind::merge(pointers);
  }

  void check() {
    for (std::size_t b = 0; b < rows_.size(); ++b) {
      const int length = static_cast<int>(rows_[b].size());
      ASSERT_EQ(cache_->batch_offset()[b], length);
      auto single = cache_->extract(static_cast<int>(b));
      ASSERT_EQ(single.offset(), length);
      Ids ids = ids_of(single.state()[0]);
      ASSERT_GE(ids.size(), newest(rows_[b]).size());
      ASSERT_EQ(ids, Ids(rows_[b].end() - std::ssize(ids), rows_[b].end()));
    }
  }

  int max_size_;
  Draw draw_;
  std::unique_ptr<Kind> cache_;
  Rows rows_;
  int next_ = 0;
};

TEST(CachesProperty, BatchKVCache) {
  BatchRunner<BatchKVCache>(INT32_MAX).run();
}

TEST(CachesProperty, BatchRotatingKVCache) {
  for (const int max_size : {7, 40}) {
    BatchRunner<BatchRotatingKVCache>(max_size).run(steps() / 2);
  }
}

}  // namespace
}  // namespace saker::caches
