// SPDX-License-Identifier: Apache-2.0
// Rows that an instruction set writes into pages, against those written one by one.
#include "saker/kernels/cpu/dispatch/attend_bodies.h"
#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/ops/page_shape.h"
#include "saker/kernels/storage/kv_pages.h"

#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/random_floats.h"
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace saker::kernels {
namespace {

// Normal numbers, and now and then what rounds in another way.
std::vector<float> special_floats(std::size_t count, std::mt19937& random) {
  using Limits = std::numeric_limits<float>;
  constexpr float kSpecial[] = {
      0.0F, -0.0F, 1e-40F, -1e-39F, 3.4e38F, Limits::infinity(), Limits::quiet_NaN(), 1.00390625F
  };
  auto floats = normal_floats(count, random());
  for (float& value : floats) {
    if (random() % 8 == 0) {
      value = kSpecial[random() % std::size(kSpecial)];
    }
  }
  return floats;
}

// Rows for some slots of a page of bf16.
struct PageCase {
  explicit PageCase(std::mt19937& random) {
    const auto of = [&](std::initializer_list<int> choices) {
      return choices.begin()[random() % choices.size()];
    };
    shape.kv_heads = 2;
    shape.head_dim = of({1, 10, 13, 33, 64, 80, 128, 256});
    shape.value_head_dim = of({shape.head_dim, 1, 17, 48, 64});
    slot = static_cast<int>(random() % kPageRows);
    count = 1 + static_cast<int>(random() % (kPageRows - slot));
    key_stride = shape.head_dim + of({0, 5});
    value_stride = shape.value_head_dim + of({0, 5});
    keys = special_floats(static_cast<std::size_t>(count) * key_stride, random);
    values = special_floats(static_cast<std::size_t>(count) * value_stride, random);
  }

  KvPageShape shape;
  int slot;
  int count;
  int key_stride;
  int value_stride;
  std::vector<float> keys;
  std::vector<float> values;
};

// One that holds other rows.
std::vector<std::byte> full_page(const KvPageLayout& layout, std::mt19937& random) {
  std::vector<std::byte> page(layout.page_bytes());
  for (int head = 0; head < layout.kv_heads; ++head) {
    for (int slot = 0; slot < kPageRows; ++slot) {
      write_key(layout, page.data(), head, slot, normal_floats(layout.head_dim, random()).data());
      const auto value = normal_floats(layout.value_head_dim, random());
      write_value(layout, page.data(), head, slot, value.data());
    }
  }
  return page;
}

class PageRowsTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { select_kernel_table(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(
    Sets,
    PageRowsTest,
    testing::ValuesIn(instruction_sets()),
    [](const auto& set) { return set.param; }
);

TEST_P(PageRowsTest, AreThoseOfOneByOne) {
  const auto write = kernel_table().attend->write_bf16_rows;
  if (write == nullptr) {
    return;  // One by one it is.
  }
  std::mt19937 random(5);  // NOLINT: the same in every run.
  for (int trial = 0; trial < 100; ++trial) {
    const PageCase c(random);
    const KvPages pages(c.shape);
    const KvPageLayout& layout = pages.layout();
    const int head = trial % c.shape.kv_heads;
    std::vector<std::byte> page = full_page(layout, random);
    std::vector<std::byte> expected = page;
    for (int i = 0; i < c.count; ++i) {
      const float* key = c.keys.data() + std::ptrdiff_t{i} * c.key_stride;
      const float* value = c.values.data() + std::ptrdiff_t{i} * c.value_stride;
      write_key(layout, expected.data(), head, c.slot + i, key);
      write_value(layout, expected.data(), head, c.slot + i, value);
    }
    const PageRows rows{
        c.keys.data(),
        c.values.data(),
        c.key_stride,
        c.value_stride,
        c.slot,
        c.count,
        page.data() + layout.keys_at(head),
    };
    write(attend_shape(pages, 2, 1.0F, 0.0F), rows);
    ASSERT_EQ(std::memcmp(page.data(), expected.data(), page.size()), 0)
        << "trial " << trial << ": " << c.count << " rows of " << c.shape.head_dim << " and "
        << c.shape.value_head_dim << " from slot " << c.slot;
  }
}

}  // namespace
}  // namespace saker::kernels
