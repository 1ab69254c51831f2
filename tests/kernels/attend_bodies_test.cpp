// SPDX-License-Identifier: Apache-2.0
// Attention over pages in every instruction set against float64, without MLX.
#include "saker/kernels/cpu/dispatch/attend_bodies.h"

#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/cpu/simd/bf16.h"
#include "saker/kernels/ops/page_shape.h"
#include "saker/kernels/storage/kv_codes.h"
#include "saker/kernels/storage/kv_pages.h"

#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/random_floats.h"
#include "tests/kernels/same_bits.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace saker::kernels {
namespace {

constexpr std::int64_t kChunkKeys = std::int64_t{kAttendChunkBlocks} * kAttendBlock;

struct Case {
  KvPageShape pages;
  int group = 1;
  int keys = 1;  // Positions [0, keys), the last `rows` of which ask.
  int rows = 1;
  int window = 0;  // 0: none. Rows see positions > their own - window, and those < keep.
  int keep = 0;
  float softcap = 0.0F;
  bool sinks = false;
  float query_size = 3.0F;
  std::uint64_t seed = 0;

  int heads() const { return pages.kv_heads * group; }
};

Case random_case(std::mt19937& random) {
  const auto of = [&](std::initializer_list<int> values) {
    return values.begin()[random() % values.size()];
  };
  Case c;
  c.pages.kv_heads = of({1, 2});
  c.pages.head_dim = of({10, 13, 16, 33, 64, 80, 96, 128});
  c.pages.value_head_dim = of({c.pages.head_dim, 1, 17, 48, 64});
  c.pages.bf16 = of({0, 1, 1}) == 1;
  c.pages.bits = of({16, 16, 8, 4});
  c.group = of({1, 2, 3, 4, 7, 8});
  c.keys = of({1, 30, 64, 65, 150, 1100});
  c.rows = std::min(c.keys, of({1, 2, 5, 9}));
  c.window = of({0, 0, 5, 70, 128});
  c.keep = of({0, 4, 66});
  c.softcap = of({0, 0, 5}) == 5 ? 5.0F : 0.0F;
  c.sinks = of({0, 0, 1}) == 1;
  c.query_size = of({0, 1, 1, 1}) == 0 ? 1e-30F : 3.0F;
  c.seed = random();
  return c;
}

// The rows of a case in pages, and what each row sees.
class Attention {
 public:
  explicit Attention(const Case& c)
      : case_(c),
        pages_(c.pages),
        shape_(attend_shape(
            pages_, c.heads(), 1.0F / std::sqrt(static_cast<float>(c.pages.head_dim)), c.softcap
        )),
        q_(normal_floats(floats(c.rows, c.heads(), c.pages.head_dim), c.seed, c.query_size)),
        sinks_(normal_floats(static_cast<std::size_t>(c.heads()), c.seed + 3, 3.0F)) {
    shape_.sinks = c.sinks ? sinks_.data() : nullptr;
    const auto k = normal_floats(floats(c.keys, c.pages.kv_heads, c.pages.head_dim), c.seed + 1);
    const auto v =
        normal_floats(floats(c.keys, c.pages.kv_heads, c.pages.value_head_dim), c.seed + 2);
    pages_.prepare(0, c.keys);
    for (int key = 0; key < c.keys; ++key) {
      for (int head = 0; head < c.pages.kv_heads; ++head) {
        const int row = key * c.pages.kv_heads + head;
        const float* key_row = k.data() + static_cast<std::ptrdiff_t>(row) * c.pages.head_dim;
        const float* value = v.data() + static_cast<std::ptrdiff_t>(row) * c.pages.value_head_dim;
        const KvPage page = pages_.page(key / kPageRows);
        if (key % kPageRows == 0) {
          begin_page(page, pages_.page(key / kPageRows - 1), head);
        }
        write_key(*page.layout, page.data, head, key % kPageRows, key_row);
        write_value(*page.layout, page.data, head, key % kPageRows, value);
      }
    }
    for (int row = 0; row < c.rows; ++row) {
      const std::int64_t position = c.keys - c.rows + row;
      const std::int64_t begin =
          c.window == 0 ? 0 : std::max<std::int64_t>(0, position + 1 - c.window);
      const bool keeps = begin > 0;
      seen_.push_back({0, keeps ? std::min<std::int64_t>(c.keep, begin) : 0, begin, position + 1});
    }
    for (std::int64_t index = 0; index * kPageRows < c.keys; ++index) {
      list_.push_back({index, pages_.find(index)});
    }
  }

  // Kv heads [first, first + count).
  struct Heads {
    int first;
    int count = 1;
  };

  // Flat rows [first, first + count) of some kv heads into `out` [rows, heads, value_head_dim].
  void run(Heads kv, int first, int count, std::vector<float>& out) const {
    const AttendBodies& bodies = *kernel_table().attend;
    const HeadRows q{
        q_.data(),
        static_cast<std::ptrdiff_t>(case_.heads()) * case_.pages.head_dim,
        case_.pages.head_dim,
    };
    const AttendTile tile{q, out.data(), seen_.data(), kv.first, kv.count, first, count};
    std::vector<float> scratch(scratch_floats(shape_, kv.count * count));
    std::vector<float> state(kv.count * state_floats(shape_, count));
    std::vector<float> total(state.size());
    bodies.load_queries(shape_, tile, scratch.data());
    for (std::size_t at = 0; at < list_.size(); at += kAttendChunkBlocks) {
      const auto count_left = static_cast<int>(list_.size() - at);
      const AttendChunk chunk{&list_[at], std::min(kAttendChunkBlocks, count_left)};
      bodies.attend_chunk(shape_, tile, chunk, scratch.data(), state.data());
      const std::int64_t index = list_[at].index * kPageRows / kChunkKeys;
      bodies.merge(shape_, tile, index, state.data(), total.data());
    }
    bodies.finish(shape_, tile, total.data());
  }

  // Into one value of a kv head's first row.
  void write_infinity(int kv_head) {
    std::vector<float> value(static_cast<std::size_t>(case_.pages.value_head_dim), 1.0F);
    value.back() = std::numeric_limits<float>::infinity();
    write_value(pages_.layout(0), pages_.find_private(0), kv_head, 0, value.data());
  }

  int flat_rows() const { return case_.rows * case_.group; }

  std::vector<float> output() const {
    return std::vector<float>(floats(case_.rows, case_.heads(), case_.pages.value_head_dim));
  }

  // What flat row `flat` of a kv head should be for a query that `set` rounds.
  std::vector<double> truth(int kv_head, int flat, std::string_view set) const {
    const SeenKeys& seen = seen_[flat / case_.group];
    const int head = kv_head * case_.group + flat % case_.group;
    const float* q = q_.data() + floats(flat / case_.group, case_.heads(), case_.pages.head_dim) +
                     static_cast<std::ptrdiff_t>(head) * case_.pages.head_dim;
    // The first page of a quantized cache is none of codes.
    const bool bf16 = case_.pages.bf16;
    const auto of_first = rounded_query(q, attend_rounding(set, bf16, kUnquantizedBits));
    const auto of_others = rounded_query(q, attend_rounding(set, bf16, case_.pages.bits));
    std::vector<double> scores;
    std::vector<std::int64_t> keys;
    for (std::int64_t key = 0; key < seen.end; ++key) {
      if (key >= seen.begin || key < seen.keep_end) {
        keys.push_back(key);
        scores.push_back(score(key < kPageRows ? of_first : of_others, kv_head, key));
      }
    }
    double top = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    if (case_.sinks) {
      const double sink = sinks_[static_cast<std::size_t>(head)];
      top = std::max(top, sink);
      sum = std::exp(sink - top);
    }
    std::vector<double> result(static_cast<std::size_t>(case_.pages.value_head_dim));
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const double weight = std::exp(scores[i] - top);
      sum += weight;
      for (std::size_t d = 0; d < result.size(); ++d) {
        result[d] += weight * element(CodeSide::kValues, kv_head, keys[i], static_cast<int>(d));
      }
    }
    for (double& value : result) {
      value /= sum;
    }
    return result;
  }

 private:
  static std::size_t floats(int rows, int heads, int width) {
    return static_cast<std::size_t>(rows) * heads * width;
  }

  // A query, scaled.
  std::vector<double> rounded_query(const float* q, Rounding rounding) const {
    std::vector<float> scaled(q, q + case_.pages.head_dim);
    float largest = 0x1p-96F;
    for (float& element : scaled) {
      element *= shape_.scale;
      largest = std::max(largest, std::abs(element));
    }
    std::vector<double> result(scaled.begin(), scaled.end());
    for (std::size_t d = 0; d < result.size(); ++d) {
      if (rounding == Rounding::kBf16) {
        result[d] = from_bf16(to_bf16(scaled[d]));
      } else if (rounding == Rounding::kInt16) {
        result[d] = std::nearbyint(scaled[d] * (32512 / largest)) * (largest / 32512.0);
      }
    }
    return result;
  }

  double score(const std::vector<double>& asked, int kv_head, std::int64_t key) const {
    double sum = 0;
    for (int d = 0; d < case_.pages.head_dim; ++d) {
      sum += asked[static_cast<std::size_t>(d)] * element(CodeSide::kKeys, kv_head, key, d);
    }
    const double cap = case_.softcap;
    return cap > 0 ? cap * std::tanh(sum / cap) : sum;
  }

  // Element d of a stored row, as exactly as the page has it.
  double element(CodeSide side, int head, std::int64_t key, int d) const {
    const KvPageLayout& layout = pages_.layout(key / kPageRows);
    const bool keys = side == CodeSide::kKeys;
    const std::byte* page = pages_.find(key / kPageRows);
    const auto slot = static_cast<int>(key % kPageRows);
    const CodeBlock& codes = keys ? layout.key_codes : layout.value_codes;
    if (codes.is_quantized()) {
      const std::byte* at = page + (keys ? layout.keys_at(head) : layout.values_at(head));
      return read_element(codes, side, at, slot, d);
    }
    std::vector<float> row(256);
    auto* bytes = reinterpret_cast<std::byte*>(row.data());
    (keys ? read_key : read_value)(layout, page, head, slot, bytes);
    return layout.bf16 ? from_bf16(reinterpret_cast<const std::uint16_t*>(bytes)[d]) : row[d];
  }

  Case case_;
  KvPages pages_;
  AttendShape shape_;
  std::vector<float> q_;
  std::vector<float> sinks_;
  std::vector<SeenKeys> seen_;
  std::vector<AttendPage> list_;
};

class AttendBodiesTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { select_kernel_table(GetParam()); }

  std::mt19937 random_{11};  // NOLINT: the same in every run.
};

INSTANTIATE_TEST_SUITE_P(
    Sets,
    AttendBodiesTest,
    testing::ValuesIn(instruction_sets()),
    [](const auto& set) { return set.param; }
);

TEST_P(AttendBodiesTest, IsNearTheTruth) {
  for (int trial = 0; trial < 60; ++trial) {
    const Case c = random_case(random_);
    const Attention attention(c);
    auto out = attention.output();
    const int kv_head = c.pages.kv_heads - 1;
    attention.run({kv_head}, 0, attention.flat_rows(), out);
    const double limit = attend_limit(GetParam(), c.pages.bf16, c.pages.bits);
    for (const int flat : {0, attention.flat_rows() / 2, attention.flat_rows() - 1}) {
      const auto expected = attention.truth(kv_head, flat, GetParam());
      const int head = kv_head * c.group + flat % c.group;
      const std::size_t at = (static_cast<std::size_t>(flat / c.group) * c.heads() + head) *
                             static_cast<std::size_t>(c.pages.value_head_dim);
      for (std::size_t d = 0; d < expected.size(); ++d) {
        ASSERT_NEAR(out[at + d], expected[d], limit) << "trial " << trial << " element " << d;
      }
    }
  }
}

// The bits of a row are those of the row alone, also where a value is infinite.
TEST_P(AttendBodiesTest, RowsAreIndependent) {
  for (int trial = 0; trial < 40; ++trial) {
    const Case c = random_case(random_);
    Attention attention(c);
    if (trial % 4 == 0) {
      attention.write_infinity(trial / 4 % c.pages.kv_heads);
    }
    auto together = attention.output();
    auto alone = attention.output();
    for (int kv_head = 0; kv_head < c.pages.kv_heads; ++kv_head) {
      attention.run({kv_head}, 0, attention.flat_rows(), together);
      for (int flat = 0; flat < attention.flat_rows();) {
        const int left = attention.flat_rows() - flat;
        const int count = std::min(left, 1 + static_cast<int>(random_() % 3));
        attention.run({kv_head}, flat, count, alone);
        flat += count;
      }
    }
    ASSERT_TRUE(same_bits(alone.data(), together.data(), alone.size())) << "trial " << trial;
  }
}

// Nor do other heads of the tile change them, also where some of its values are infinite.
TEST_P(AttendBodiesTest, HeadsAreIndependent) {
  constexpr int kHeads = 3;
  for (int trial = 0; trial < 40; ++trial) {
    Case c = random_case(random_);
    c.pages.kv_heads = kHeads;
    Attention attention(c);
    if (trial % 2 == 0) {
      attention.write_infinity(static_cast<int>(random_() % kHeads));
    }
    auto together = attention.output();
    auto alone = attention.output();
    attention.run({0, kHeads}, 0, attention.flat_rows(), together);
    for (int kv_head = 0; kv_head < kHeads; ++kv_head) {
      attention.run({kv_head}, 0, attention.flat_rows(), alone);
    }
    ASSERT_TRUE(same_bits(alone.data(), together.data(), alone.size())) << "trial " << trial;
  }
}

}  // namespace
}  // namespace saker::kernels
