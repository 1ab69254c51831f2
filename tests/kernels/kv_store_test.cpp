// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/storage/kv_store.h"

#include "saker/base/error.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace saker::kernels {
namespace {

mx::array random_rows(const KvShape& shape, int count, int width, std::uint64_t seed) {
  return mx::random::normal({shape.kv_heads, count, width}, mx::float32, mx::random::key(seed));
}

bool same_rows(const mx::array& a, const mx::array& b) {
  return mx::array_equal(a, b).item<bool>();
}

void fill(KvStore& store, std::int64_t first, int count, std::uint64_t seed) {
  store.prepare(first, count);
  store.write(
      first,
      random_rows(store.shape(), count, store.shape().head_dim, seed),
      random_rows(store.shape(), count, store.shape().value_head_dim, seed + 1)
  );
}

mx::array slots(const mx::array& rows, int from, int to) {
  return mx::slice(rows, {0, from, 0}, {rows.shape(0), to, rows.shape(2)});
}

constexpr std::size_t kPageBytes = 2UL * 64 * (16 + 16) * 2;

const KvShape kShape{2, 16, 16, mx::bfloat16};  // NOLINT(readability-identifier-naming)

class KvStoreTest : public testing::TestWithParam<KvLayout> {};

TEST_P(KvStoreTest, GivesBackWhatWasWrittenRounded) {
  for (const mx::Dtype dtype : {mx::bfloat16, mx::float32}) {
    const KvShape shape{3, 13, 21, dtype};
    KvStore store(shape, GetParam());
    fill(store, 0, 150, 5);
    EXPECT_TRUE(same_rows(
        store.keys(60, 70), slots(mx::astype(random_rows(shape, 150, 13, 5), dtype), 60, 130)
    ));
    EXPECT_TRUE(same_rows(store.values(0, 150), mx::astype(random_rows(shape, 150, 21, 6), dtype)));
    EXPECT_EQ(store.keys(0, 3).dtype(), dtype);
  }
}

TEST_P(KvStoreTest, CopiesShareRowsUntilOneWrites) {
  KvStore store(kShape, GetParam());
  fill(store, 0, 100, 1);
  const auto before = mx::contiguous(store.keys(0, 100));
  mx::eval(before);
  KvStore copy(store);
  fill(copy, 100, 20, 9);
  fill(copy, 10, 5, 11);
  EXPECT_TRUE(same_rows(store.keys(0, 100), before));
  EXPECT_FALSE(same_rows(copy.keys(0, 100), before));
  EXPECT_TRUE(same_rows(slots(copy.keys(0, 120), 20, 100), slots(before, 20, 100)));
  fill(store, 100, 20, 13);
  EXPECT_FALSE(same_rows(store.keys(100, 20), copy.keys(100, 20)));
}

// Rows [0, first) of one store and [first, last) of another one, for borders all over a page.
TEST_P(KvStoreTest, AdoptsRowsFromAnyPosition) {
  std::vector<KvShape> shapes = {{2, 13, 21, mx::bfloat16}, {2, 13, 21, mx::float32}};
  if (GetParam() == KvLayout::kPaged) {
    for (const int bits : {8, 4}) {
      shapes.push_back({2, 13, 21, mx::bfloat16, bits});
      shapes.push_back({2, 13, 21, mx::float32, bits});
      shapes.push_back({1, 128, 64, mx::bfloat16, bits});
    }
  }
  for (const KvShape& shape : shapes) {
    KvStore theirs(shape, GetParam());
    fill(theirs, 0, 150, 5);
    for (const int first : {0, 1, 2, 63, 64, 65, 97, 127, 128, 149}) {
      // One sequence up to the page of `first`, as those have that share rows.
      KvStore ours(theirs);
      const int own = first / kPageRows * kPageRows;
      ours.drop_from(own);
      fill(ours, own, 149 - own, 50);
      const KvStore before(ours);
      ours.adopt(theirs.slice(first, 150), first);
      EXPECT_TRUE(ours.holds(0, 150));
      EXPECT_FALSE(ours.holds(0, 151));
      for (const auto read : {&KvStore::keys, &KvStore::values}) {
        EXPECT_TRUE(same_rows((ours.*read)(first, 150 - first), (theirs.*read)(first, 150 - first))
        );
        EXPECT_TRUE(first == 0 || same_rows((ours.*read)(0, first), (before.*read)(0, first)));
      }
    }
  }
}

TEST(KvStorePages, AdoptingSharesAllButTheBorder) {
  KvStore theirs(kShape, KvLayout::kPaged);
  fill(theirs, 0, 300, 5);
  KvStore ours(theirs);
  ours.drop_from(100);
  const auto distinct = [&] {
    std::set<const void*> blocks;
    const auto add = [&](const KvBlock& block) { blocks.insert(block.data); };
    theirs.for_each_block(add);
    ours.for_each_block(add);
    return blocks.size();
  };
  ours.adopt(theirs, 100);
  EXPECT_EQ(distinct(), 5U);
  fill(ours, 70, 1, 9);
  EXPECT_EQ(distinct(), 6U);
  ours.adopt(theirs, 100);
  EXPECT_EQ(distinct(), 6U);
  EXPECT_FALSE(same_rows(ours.keys(70, 1), theirs.keys(70, 1)));
}

TEST(KvStorePages, AddedPagesAreFilledByTheReader) {
  KvStore from(kShape, KvLayout::kPaged);
  fill(from, 0, 200, 5);
  KvStore to(kShape, KvLayout::kPaged);
  from.for_each_block([&](const KvBlock& block) {
    to.add_block(block.index, block.bytes, [&](std::span<std::byte> page) {
      std::memcpy(page.data(), block.data, page.size());
    });
    const auto fails = [](std::span<std::byte>) { throw Error(ErrorCode::kCorruptData, "cut"); };
    EXPECT_THROW(to.add_block(block.index + 1, block.bytes, fails), Error);
    EXPECT_THROW(to.add_block(block.index, block.bytes, fails), Error);
    EXPECT_FALSE(to.holds(0, (block.index + 1) * 64 + 1));
  });
  to.drop_from(200);
  EXPECT_TRUE(same_rows(to.keys(0, 200), from.keys(0, 200)));
  EXPECT_TRUE(same_rows(to.values(0, 200), from.values(0, 200)));
}

TEST(KvStorePages, TakeCodesAsTheyGiveThem) {
  for (const int bits : {8, 4}) {
    for (const mx::Dtype dtype : {mx::bfloat16, mx::float32}) {
      const KvShape shape{2, 64, 96, dtype, bits};
      KvStore from(shape, KvLayout::kPaged);
      fill(from, 0, 200, 5);
      KvStore to(shape, KvLayout::kPaged);
      to.prepare(64, 136);
      to.write(130, from.quantized_keys(130, 70), from.quantized_values(130, 70));
      to.write(64, from.quantized_keys(64, 66), from.quantized_values(64, 66));
      EXPECT_TRUE(same_rows(to.values(64, 136), from.values(64, 136)));
      const QuantizedRows taken = to.quantized_keys(64, 136);
      EXPECT_TRUE(same_rows(taken.codes, from.quantized_keys(64, 136).codes));
      EXPECT_TRUE(same_rows(taken.scales, from.quantized_keys(64, 136).scales));
      EXPECT_TRUE(same_rows(taken.biases, from.quantized_keys(64, 136).biases));
      // The first page takes what they stand for, off by one step of the codes at most.
      to.prepare(0, 64);
      to.write(0, from.quantized_keys(0, 64), from.quantized_values(0, 64));
      EXPECT_TRUE(
          mx::allclose(to.keys(0, 64), from.keys(0, 64), 0, bits == 8 ? 0.04 : 0.7).item<bool>()
      );
      const auto keys = from.quantized_keys(0, 30);
      auto other = keys;
      other.bits = 12 - bits;
      EXPECT_THROW(to.write(0, other, from.quantized_values(0, 30)), Error);
      EXPECT_THROW(to.write(0, from.quantized_values(0, 30), keys), Error);
      EXPECT_THROW(to.write(190, keys, from.quantized_values(0, 30)), Error);
    }
  }
}

TEST(KvStorePages, DroppedPagesAreAbsentInSlices) {
  KvStore store(kShape, KvLayout::kPaged);
  fill(store, 0, 400, 5);
  store.drop_before(200, 10);
  const KvStore part = store.slice(5, 390);
  EXPECT_TRUE(part.holds(5, 64));
  EXPECT_FALSE(part.holds(5, 65));
  EXPECT_FALSE(part.holds(150, 200));
  EXPECT_TRUE(part.holds(192, 390));
  EXPECT_FALSE(part.holds(192, 391));
  EXPECT_TRUE(part.holds(80, 80));
}

TEST_P(KvStoreTest, ForgottenRowsAreAnError) {
  KvStore store(kShape, GetParam());
  fill(store, 0, 100, 1);
  store.drop_from(70);
  EXPECT_THROW(store.keys(65, 10), Error);
  EXPECT_NO_THROW(store.keys(65, 5));
  EXPECT_THROW(store.keys(-1, 3), Error);
  EXPECT_THROW(store.keys(INT64_MAX, 3), Error);
}

// As a ring does that goes back behind everything it still has.
TEST_P(KvStoreTest, StartsAnewWhereNoRowIsLeft) {
  KvStore store(kShape, GetParam());
  fill(store, 0, 600, 1);
  store.drop_before(500, 0);
  fill(store, 600, 300, 2);  // More than there is room for: what was dropped makes some.
  store.drop_from(0);
  fill(store, 0, 100, 3);
  EXPECT_TRUE(store.holds(0, 100));
  EXPECT_FALSE(store.holds(0, 101));
  EXPECT_TRUE(
      same_rows(store.keys(0, 100), mx::astype(random_rows(kShape, 100, 16, 3), mx::bfloat16))
  );
}

TEST_P(KvStoreTest, RowsMustBePreparedAndFit) {
  KvStore store(kShape, GetParam());
  const auto rows = random_rows(kShape, 3, 16, 1);
  EXPECT_THROW(store.write(0, rows, rows), Error);
  store.prepare(0, 3);
  EXPECT_THROW(store.write(1, rows, rows), Error);
  EXPECT_THROW(store.write(0, rows, slots(rows, 0, 2)), Error);
  EXPECT_THROW(store.write(0, mx::zeros({2, 3, 15}), rows), Error);
  EXPECT_NO_THROW(store.write(0, rows, rows));
  EXPECT_THROW(store.prepare(-1, 3), Error);
  EXPECT_THROW(store.prepare(5, -3), Error);
}

INSTANTIATE_TEST_SUITE_P(
    Layouts,
    KvStoreTest,
    testing::Values(KvLayout::kPaged, KvLayout::kContiguous),
    [](const auto& layout) { return layout.param == KvLayout::kPaged ? "Paged" : "Contiguous"; }
);

TEST(KvPagesTest, AnAppendAfterACopyCopiesOnePage) {
  KvStore store(kShape, KvLayout::kPaged);
  fill(store, 0, 64 * 5 + 10, 1);
  EXPECT_EQ(store.nbytes(), 6 * kPageBytes);
  KvStore copy(store);
  copy.prepare(64 * 5 + 10, 20);
  EXPECT_EQ(copy.nbytes(), 6 * kPageBytes);
  // Writing to the shared pages would need another copy.
  const auto rows = random_rows(kShape, 1, 16, 3);
  EXPECT_THROW(copy.write(64 * 4, rows, rows), Error);
  EXPECT_NO_THROW(copy.write(64 * 5 + 10, rows, rows));
}

TEST(KvPagesTest, DropsWholePagesButThoseToKeep) {
  KvStore store(kShape, KvLayout::kPaged);
  fill(store, 0, 64 * 6, 1);
  const auto kept = store.keys(0, 100);
  store.drop_before(64 * 4 + 5, 70);
  EXPECT_EQ(store.nbytes(), 4 * kPageBytes);
  EXPECT_TRUE(same_rows(store.keys(0, 100), kept));
  EXPECT_THROW(store.keys(64 * 2, 1), Error);
  EXPECT_THROW(store.keys(64 * 3, 200), Error);
  EXPECT_NO_THROW(store.keys(64 * 4, 128));
  store.drop_before(64 * 6, 0);
  EXPECT_EQ(store.nbytes(), 0U);
  store.prepare(64 * 6, 1);
  EXPECT_EQ(store.nbytes(), kPageBytes);
}

TEST(KvPagesTest, WithoutMemoryNothingChanges) {
  KvStore store(KvShape{4096, 4096, 4096, mx::float32}, KvLayout::kPaged);
  EXPECT_THROW(store.prepare(0, INT_MAX), Error);
  EXPECT_EQ(store.nbytes(), 0U);
  EXPECT_THROW(store.keys(0, 1), Error);
  try {
    store.prepare(10, INT_MAX);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCapacity);
  }
}

TEST(KvStoreShapeTest, ImpossibleShapesAreErrors) {
  EXPECT_THROW(KvStore(KvShape{0, 16, 16, mx::bfloat16}), Error);
  EXPECT_THROW(KvStore(KvShape{1, 0, 16, mx::bfloat16}), Error);
  EXPECT_THROW(KvStore(KvShape{1, 16, 1 << 20, mx::bfloat16}), Error);
  EXPECT_THROW(KvStore(KvShape{1, 16, 16, mx::int32}), Error);
}

// A store beside what it has to hold.
struct PlainStore {
  KvStore store;
  std::vector<float> rows;  // One number per position, all elements of a row the same.

  int size() const { return static_cast<int>(rows.size()); }

  // Numbers from `first` on.
  void write(int count, float first) {
    store.prepare(size(), count);
    std::vector<float> fresh(static_cast<std::size_t>(count));
    std::iota(fresh.begin(), fresh.end(), first);
    const mx::array column(fresh.data(), {1, count, 1}, mx::float32);
    store.write(
        size(), mx::broadcast_to(column, {1, count, 3}), mx::broadcast_to(column, {1, count, 2})
    );
    rows.insert(rows.end(), fresh.begin(), fresh.end());
  }

  void drop_from(int end) {
    store.drop_from(end);
    rows.resize(static_cast<std::size_t>(end));
  }

  bool holds_its_rows() const {
    if (rows.empty()) {
      return true;
    }
    const mx::array column(rows.data(), {1, size(), 1}, mx::float32);
    return same_rows(store.keys(0, size()), mx::broadcast_to(column, {1, size(), 3})) &&
           same_rows(store.values(0, size()), mx::broadcast_to(column, {1, size(), 2}));
  }
};

// A script of random steps on a store and its copies, against plain arrays.
RC_GTEST_PROP(KvPagesPropertyTest, BehaveLikePlainRows, ()) {
  const KvShape shape{1, 3, 2, mx::float32};
  std::vector<PlainStore> stores = {{KvStore(shape, KvLayout::kPaged), {}}};
  int next = 1;
  for (int step = 0; step < 30; ++step) {
    const auto any = rc::gen::inRange<std::size_t>(0, stores.size());
    PlainStore& one = stores[*any];
    const int choice = *rc::gen::inRange(0, 3);
    if (choice == 0) {
      const int count = *rc::gen::element(1, 5, 64, 90);
      one.write(count, static_cast<float>(next));
      next += count;
    } else if (choice == 1) {
      one.drop_from(*rc::gen::inRange(0, one.size() + 1));
    } else if (PlainStore copy = one; stores.size() < 4) {
      stores.push_back(std::move(copy));
    } else {
      stores[*any] = std::move(copy);
    }
  }
  for (const PlainStore& one : stores) {
    RC_ASSERT(one.holds_its_rows());
  }
}

}  // namespace
}  // namespace saker::kernels
