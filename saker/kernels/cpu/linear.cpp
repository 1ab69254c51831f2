// SPDX-License-Identifier: Apache-2.0
// Matrix products of one instruction set; linear_bodies.h states the order of additions.
//
// One row of x: weights are read once, unpacked in registers, several blocks (and groups) at a time
// so that their chains overlap. More rows: up to kPanelColumns columns of a few blocks are unpacked
// into a panel that stays in the first-level cache, and slivers of rows are multiplied with it;
// sums go through memory between panels, which changes no bit.
#include "saker/kernels/cpu/linear_bodies.h"
#include "saker/kernels/cpu/linear_formats.h"
#include "saker/kernels/cpu/vec.h"

namespace saker::kernels::SAKER_ISA {

extern const LinearBodies linear_bodies;

namespace {

// Sums that fit the registers beside their operands: kSliverRows * kBlockStep of them.
#if defined(SAKER_EMULATE_AVX512) || defined(__AVX512F__)
constexpr int kSliverRows = 6;
constexpr int kBlockStep = 4;
#elif defined(__AVX2__)
constexpr int kSliverRows = 6;
constexpr int kBlockStep = 1;
#else
constexpr int kSliverRows = 2;
constexpr int kBlockStep = 1;
#endif
constexpr int kRowBlocks = 4;       // Blocks in flight for a single row.
constexpr int kPanelColumns = 256;  // A multiple of every group.
static_assert(kTileRows % kSliverRows == 0 && kTileBlocks % kBlockStep == 0);

constexpr int smaller(int a, int b) {
  return a < b ? a : b;
}

// Where a sliver's prepared rows lie: inputs [K / kPerOperand][rows], then sums of groups
// [groups][rows].
template <typename Input>
struct Sliver {
  const Input* inputs;
  const float* sums;
  int rows;
};

template <typename Format>
constexpr int inputs_per_row(int columns) {
  constexpr int k = Format::Operand::kPerOperand;
  return (columns + k - 1) / k;
}

template <typename Format>
std::size_t row_bytes(const PackedMatrix& weight) {
  const int sums = weight.has_groups() ? weight.groups() : 0;
  return 4 * static_cast<std::size_t>(inputs_per_row<Format>(weight.columns) + sums);
}

template <typename Format>
auto sliver_at(const PackedMatrix& weight, const LinearTile& tile, int first_row) {
  using Input = typename Format::Operand::Input;
  const int rows = smaller(kSliverRows, tile.total_rows - first_row);
  const std::byte* at = tile.prepared + first_row * row_bytes<Format>(weight);
  const auto* inputs = reinterpret_cast<const Input*>(at);
  const int count = inputs_per_row<Format>(weight.columns) * rows;
  return Sliver<Input>{inputs, reinterpret_cast<const float*>(inputs + count), rows};
}

// ---- Preparing rows of x ----

template <typename Format>
constexpr bool kGrouped = false;
template <>
constexpr bool kGrouped<NibbleFormat> = true;
template <>
constexpr bool kGrouped<ByteFormat> = true;

// Copies x[k .. k + count) of a row to `values`, padded by zeros to a multiple of 16.
void copy_inputs(const InputRows& x, int row, int k, int count, float* values) {
  const float* from = x.data + row * x.row_stride + k * x.column_stride;
  for (int i = 0; i < count; ++i) {
    values[i] = from[i * x.column_stride];
  }
  for (int i = count; i % 16 != 0; ++i) {
    values[i] = 0.0F;
  }
}

// Scales sixteen values, the first of a column divisible by 16, as the format's operands want it.
template <typename Format>
F32x16 input_lanes(F32x16 lanes) {
  if constexpr (!kGrouped<Format> || Format::Operand::kPerOperand == 2) {
    return lanes;
  } else {
    alignas(64) float scales[16];
    for (int i = 0; i < 16; ++i) {
      scales[i] = Format::input_scale(i);
    }
    return mul(lanes, load(scales));
  }
}

inline void store_inputs(const float* values, int count, int stride, float* inputs) {
  for (int i = 0; i < count; ++i) {
    inputs[i * stride] = values[i];
  }
}

// Pairs of values that are bf16 already.
inline void store_inputs(const float* values, int count, int stride, std::uint32_t* inputs) {
  for (int i = 0; i < count; i += 2) {
    inputs[i / 2 * stride] = __builtin_bit_cast(std::uint32_t, values[i]) >> 16 |
                             __builtin_bit_cast(std::uint32_t, values[i + 1]);
  }
}

template <typename Format>
void prepare(const PackedMatrix& weight, const InputRows& x, int sliver, std::byte* prepared) {
  using Input = typename Format::Operand::Input;
  constexpr int kPerOperand = Format::Operand::kPerOperand;
  const int first = sliver * kSliverRows;
  const int rows = smaller(kSliverRows, x.count - first);
  auto* inputs = reinterpret_cast<Input*>(prepared + first * row_bytes<Format>(weight));
  auto* sums = reinterpret_cast<float*>(inputs + inputs_per_row<Format>(weight.columns) * rows);
  const int chunk = kGrouped<Format> ? weight.group : 64;
  alignas(64) float values[128];
  for (int row = 0; row < rows; ++row) {
    for (int k = 0; k < weight.columns; k += chunk) {
      const int count = smaller(chunk, weight.columns - k);
      copy_inputs(x, first + row, k, count, values);
      F32x16 sum = zero();
      for (int i = 0; i < count; i += 16) {
        F32x16 lanes = load(values + i);
        if constexpr (kPerOperand == 2) {
          lanes = as_float(shift_left<16>(to_bf16(lanes)));
        }
        sum = add(sum, lanes);
        store(values + i, input_lanes<Format>(lanes));
      }
      store_inputs(values, count, rows, inputs + k / kPerOperand * rows + row);
      if constexpr (kGrouped<Format>) {
        sums[k / weight.group * rows + row] = reduce_add(sum);
      }
    }
  }
}

// ---- One row ----

// Adds one group's chain to y: a is the chain of products, sum the group's sum of x.
template <typename Format>
[[gnu::always_inline]] inline F32x16 add_group(
    F32x16 y, F32x16 a, F32x16 sum, F32x16 scale, F32x16 bias
) {
  if constexpr (Format::kOffset != 0.0F) {
    a = fma(broadcast(-Format::kOffset), sum, a);
  }
  return fma(bias, sum, fma(scale, a, y));
}

// Writes sixteen results of a row, fewer at the right edge.
inline void store_result(
    const PackedMatrix& weight, const LinearTile& tile, int row, int block, F32x16 y
) {
  const int column = block * kBlockRows;
  const int count = smaller(kBlockRows, weight.rows - column);
  float* out = tile.out + static_cast<std::size_t>(row) * weight.rows + column;
  if (count == kBlockRows) {
    store(out, tile.bias == nullptr ? y : add(y, load(tile.bias + column)));
  } else {
    store_part(out, tile.bias == nullptr ? y : add(y, load_part(tile.bias + column, count)), count);
  }
}

template <typename Format, int kBlocks>
void multiply_row_dense(const PackedMatrix& weight, const LinearTile& tile, int block) {
  using Operand = typename Format::Operand;
  const auto x = sliver_at<Format>(weight, tile, tile.first_row);
  const std::byte* words = weight.block(block);
  const std::size_t stride = weight.block_bytes();
  const int steps = inputs_per_row<Format>(weight.columns) / Format::kOperands;
  const typename Operand::Input* inputs = x.inputs;
  F32x16 y[kBlocks];
  unroll<kBlocks>([&](auto b) { y[b.kValue] = zero(); });
  for (int step = 0; step < steps; ++step) {
    unroll<kBlocks>([&](auto b) {
      const auto word = Format::load_word(words + b.kValue * stride);
      unroll<Format::kOperands>([&](auto i) {
        y[b.kValue] =
            Operand::step(y[b.kValue], Format::template operand<i.kValue>(word), inputs[i.kValue]);
      });
    });
    words += Format::kStepBytes;
    inputs += Format::kOperands;
  }
  // An odd column of bf16 weights whose operands are single: the other half of the word is no
  // column.
  if (steps * Format::kOperands < inputs_per_row<Format>(weight.columns)) {
    unroll<kBlocks>([&](auto b) {
      const auto word = Format::load_word(words + b.kValue * stride);
      y[b.kValue] = Operand::step(y[b.kValue], Format::template operand<0>(word), inputs[0]);
    });
  }
  unroll<kBlocks>([&](auto b) {
    store_result(weight, tile, tile.first_row, block + b.kValue, y[b.kValue]);
  });
}

// kBlocks blocks times kGroups groups are in flight.
template <typename Format, int kBlocks, int kGroups>
[[gnu::always_inline]] inline void add_row_groups(
    const PackedMatrix& weight,
    const std::byte* words,
    const typename Format::Operand::Input* inputs,
    const float* sums,
    F32x16 (&y)[kBlocks]
) {
  using Operand = typename Format::Operand;
  const std::size_t stride = weight.block_bytes();
  const std::size_t group_bytes = weight.group_bytes();
  const int group_inputs = weight.group / Operand::kPerOperand;
  const int steps = group_inputs / Format::kOperands;
  F32x16 a[kGroups][kBlocks];
  unroll<kGroups>([&](auto g) { unroll<kBlocks>([&](auto b) { a[g.kValue][b.kValue] = zero(); }); }
  );
  const std::byte* at = words;
  for (int step = 0; step < steps; ++step) {
    unroll<kGroups>([&](auto g) {
      unroll<kBlocks>([&](auto b) {
        const auto word = Format::load_word(at + b.kValue * stride + g.kValue * group_bytes);
        unroll<Format::kOperands>([&](auto i) {
          a[g.kValue][b.kValue] = Operand::step(
              a[g.kValue][b.kValue],
              Format::template operand<i.kValue>(word),
              inputs[g.kValue * group_inputs + i.kValue]
          );
        });
      });
    });
    at += Format::kStepBytes;
    inputs += Format::kOperands;
  }
  unroll<kGroups>([&](auto g) {
    const F32x16 sum = broadcast(sums[g.kValue]);
    unroll<kBlocks>([&](auto b) {
      const std::byte* scales = at + b.kValue * stride + g.kValue * group_bytes;
      const std::byte* biases = scales + kBlockRows * scale_bytes(weight.scale_kind);
      y[b.kValue] = add_group<Format>(
          y[b.kValue],
          a[g.kValue][b.kValue],
          sum,
          load_scales(weight.scale_kind, scales),
          load_scales(weight.scale_kind, biases)
      );
    });
  });
}

template <typename Format, int kBlocks>
void multiply_row_grouped(const PackedMatrix& weight, const LinearTile& tile, int block) {
  // Groups are independent chains: with few blocks, two at a time keep the multipliers busy.
  constexpr int kGroups = kBlocks < kRowBlocks ? 2 : 1;
  const auto x = sliver_at<Format>(weight, tile, tile.first_row);
  const int group_inputs = weight.group / Format::Operand::kPerOperand;
  const std::byte* words = weight.block(block);
  F32x16 y[kBlocks];
  unroll<kBlocks>([&](auto b) { y[b.kValue] = zero(); });
  int group = 0;
  for (; group + kGroups <= weight.groups(); group += kGroups) {
    add_row_groups<Format, kBlocks, kGroups>(
        weight,
        words + group * weight.group_bytes(),
        x.inputs + group * group_inputs,
        x.sums + group,
        y
    );
  }
  for (; group < weight.groups(); ++group) {
    add_row_groups<Format, kBlocks, 1>(
        weight,
        words + group * weight.group_bytes(),
        x.inputs + group * group_inputs,
        x.sums + group,
        y
    );
  }
  unroll<kBlocks>([&](auto b) {
    store_result(weight, tile, tile.first_row, block + b.kValue, y[b.kValue]);
  });
}

template <typename Format, int kBlocks>
void multiply_row(const PackedMatrix& weight, const LinearTile& tile, int block) {
  if constexpr (kGrouped<Format>) {
    multiply_row_grouped<Format, kBlocks>(weight, tile, block);
  } else {
    multiply_row_dense<Format, kBlocks>(weight, tile, block);
  }
}

template <typename Format>
void multiply_single(const PackedMatrix& weight, const LinearTile& tile) {
  const int end = tile.first_block + tile.block_count;
  int block = tile.first_block;
  for (; block + kRowBlocks <= end; block += kRowBlocks) {
    multiply_row<Format, kRowBlocks>(weight, tile, block);
  }
  for (; block < end; ++block) {
    multiply_row<Format, 1>(weight, tile, block);
  }
}

// ---- Several rows ----

// Columns [first, first + count) of kBlockStep blocks, unpacked.
struct PanelRange {
  int first_block;
  int blocks;
  int first;
  int count;
};

// The working memory of one tile.
template <typename Format>
struct TileMemory {
  using Input = typename Format::Operand::Input;
  alignas(64) Input panel[kPanelColumns / Format::Operand::kPerOperand][kBlockStep][kBlockRows];
  alignas(64) float sums[kTileBlocks / kBlockStep][kTileRows][kBlockStep][kBlockRows];
};

template <typename Format>
void unpack_panel(const PackedMatrix& weight, const PanelRange& range, TileMemory<Format>& memory) {
  using Operand = typename Format::Operand;
  const int group = kGrouped<Format> ? weight.group : range.count;
  const std::size_t skip =
      kGrouped<Format> ? weight.group_bytes() - weight.group_word_bytes() : std::size_t{0};
  const int steps = (inputs_per_row<Format>(group) + Format::kOperands - 1) / Format::kOperands;
  for (int b = 0; b < range.blocks; ++b) {
    const std::byte* words = weight.block(range.first_block + b);
    if constexpr (kGrouped<Format>) {
      words += range.first / weight.group * weight.group_bytes();
    } else {
      words += range.first / Operand::kPerOperand / Format::kOperands * Format::kStepBytes;
    }
    int at = 0;
    for (int k = 0; k < range.count; k += group) {
      for (int step = 0; step < steps; ++step) {
        const auto word = Format::load_word(words);
        unroll<Format::kOperands>([&](auto i) {
          Operand::store_panel(
              memory.panel[at + i.kValue][b], Format::template operand<i.kValue>(word)
          );
        });
        words += Format::kStepBytes;
        at += Format::kOperands;
      }
      words += skip;
    }
  }
}

// sums += panel[first ..][..] * inputs for kRows rows, the chains kept in registers.
template <typename Format, int kRows>
[[gnu::always_inline]] inline void multiply_panel(
    const typename Format::Operand::Input (*panel)[kBlockStep][kBlockRows],
    const typename Format::Operand::Input* inputs,
    int count,
    F32x16 (&acc)[kRows][kBlockStep]
) {
  using Operand = typename Format::Operand;
  for (int i = 0; i < count; ++i) {
    typename Operand::Weight w[kBlockStep];
    unroll<kBlockStep>([&](auto b) { w[b.kValue] = Operand::load_panel(panel[i][b.kValue]); });
    unroll<kRows>([&](auto row) {
      unroll<kBlockStep>([&](auto b) {
        acc[row.kValue][b.kValue] =
            Operand::step(acc[row.kValue][b.kValue], w[b.kValue], inputs[row.kValue]);
      });
    });
    inputs += kRows;
  }
}

template <int kRows>
[[gnu::always_inline]] inline void load_sums(
    const float (*sums)[kBlockStep][kBlockRows], F32x16 (&acc)[kRows][kBlockStep]
) {
  unroll<kRows>([&](auto row) {
    unroll<kBlockStep>([&](auto b) { acc[row.kValue][b.kValue] = load(sums[row.kValue][b.kValue]); }
    );
  });
}

template <int kRows>
[[gnu::always_inline]] inline void store_sums(
    const F32x16 (&acc)[kRows][kBlockStep], float (*sums)[kBlockStep][kBlockRows]
) {
  unroll<kRows>([&](auto row) {
    unroll<kBlockStep>([&](auto b) { store(sums[row.kValue][b.kValue], acc[row.kValue][b.kValue]); }
    );
  });
}

// Adds the panel's products to the sums of one sliver.
template <typename Format, int kRows>
void multiply_sliver(
    const PackedMatrix& weight,
    const PanelRange& range,
    const TileMemory<Format>& memory,
    const Sliver<typename Format::Operand::Input>& x,
    float (*sums)[kBlockStep][kBlockRows]
) {
  constexpr int kPerOperand = Format::Operand::kPerOperand;
  F32x16 acc[kRows][kBlockStep];
  const auto* inputs = x.inputs + range.first / kPerOperand * kRows;
  if constexpr (!kGrouped<Format>) {
    load_sums<kRows>(sums, acc);
    multiply_panel<Format, kRows>(memory.panel, inputs, inputs_per_row<Format>(range.count), acc);
    store_sums<kRows>(acc, sums);
  } else {
    const int group_inputs = weight.group / kPerOperand;
    const int first_group = range.first / weight.group;
    for (int g = 0; g < range.count / weight.group; ++g) {
      unroll<kRows>([&](auto row) {
        unroll<kBlockStep>([&](auto b) { acc[row.kValue][b.kValue] = zero(); });
      });
      multiply_panel<Format, kRows>(
          memory.panel + g * group_inputs, inputs + g * group_inputs * kRows, group_inputs, acc
      );
      const std::size_t offset =
          (first_group + g) * weight.group_bytes() + weight.group_word_bytes();
      const float* group_sums = x.sums + (first_group + g) * kRows;
      for (int b = 0; b < range.blocks; ++b) {
        const std::byte* scales = weight.block(range.first_block + b) + offset;
        const F32x16 scale = load_scales(weight.scale_kind, scales);
        const F32x16 bias =
            load_scales(weight.scale_kind, scales + kBlockRows * scale_bytes(weight.scale_kind));
        unroll<kRows>([&](auto row) {
          float* y = sums[row.kValue][b];
          const F32x16 sum = broadcast(group_sums[row.kValue]);
          store(y, add_group<Format>(load(y), acc[row.kValue][b], sum, scale, bias));
        });
      }
    }
  }
}

template <typename Format, int kRows = kSliverRows>
void multiply_sliver_rows(
    const PackedMatrix& weight,
    const PanelRange& range,
    const TileMemory<Format>& memory,
    const Sliver<typename Format::Operand::Input>& x,
    float (*sums)[kBlockStep][kBlockRows]
) {
  if constexpr (kRows > 0) {
    if (x.rows == kRows) {
      multiply_sliver<Format, kRows>(weight, range, memory, x, sums);
    } else {
      multiply_sliver_rows<Format, kRows - 1>(weight, range, memory, x, sums);
    }
  }
}

template <typename Format>
void multiply_several(const PackedMatrix& weight, const LinearTile& tile) {
  TileMemory<Format> memory;
  const int end = tile.first_block + tile.block_count;
  for (int block = tile.first_block; block < end; block += kBlockStep) {
    auto* sums = memory.sums[(block - tile.first_block) / kBlockStep];
    __builtin_memset(sums, 0, static_cast<std::size_t>(tile.row_count) * sizeof(*sums));
  }
  if (tile.block_count % kBlockStep != 0) {
    __builtin_memset(memory.panel, 0, sizeof(memory.panel));
  }
  for (int k = 0; k < weight.columns; k += kPanelColumns) {
    for (int block = tile.first_block; block < end; block += kBlockStep) {
      const PanelRange range = {
          block,
          smaller(kBlockStep, end - block),
          k,
          smaller(kPanelColumns, weight.columns - k),
      };
      unpack_panel<Format>(weight, range, memory);
      auto* sums = memory.sums[(block - tile.first_block) / kBlockStep];
      for (int row = 0; row < tile.row_count; row += kSliverRows) {
        const auto x = sliver_at<Format>(weight, tile, tile.first_row + row);
        multiply_sliver_rows<Format>(weight, range, memory, x, sums + row);
      }
    }
  }
  for (int row = 0; row < tile.row_count; ++row) {
    for (int b = 0; b < tile.block_count; ++b) {
      const F32x16 y = load(memory.sums[b / kBlockStep][row][b % kBlockStep]);
      store_result(weight, tile, tile.first_row + row, tile.first_block + b, y);
    }
  }
}

// ---- By kind ----

// Calls function with the format of the weight.
template <typename Function>
[[gnu::always_inline]] inline auto with_format(const PackedMatrix& weight, Function function) {
  switch (weight.kind) {
    case PackedKind::kFloat16:
      return function(Float16Format());
    case PackedKind::kBFloat16:
      return function(BFloat16Format());
    case PackedKind::kNibble:
      return function(NibbleFormat());
    case PackedKind::kByte:
      return function(ByteFormat());
    default:
      return function(Float32Format());
  }
}

std::size_t prepared_row_bytes(const PackedMatrix& weight) {
  return with_format(weight, [&](auto format) { return row_bytes<decltype(format)>(weight); });
}

void prepare_sliver(
    const PackedMatrix& weight, const InputRows& x, int sliver, std::byte* prepared
) {
  with_format(weight, [&](auto format) { prepare<decltype(format)>(weight, x, sliver, prepared); });
}

void multiply(const PackedMatrix& weight, const LinearTile& tile) {
  with_format(weight, [&](auto format) {
    using Format = decltype(format);
    if (tile.total_rows == 1) {
      multiply_single<Format>(weight, tile);
    } else {
      multiply_several<Format>(weight, tile);
    }
  });
}

}  // namespace

const LinearBodies linear_bodies = {
    kSliverRows,
    kBlockStep,
    prepared_row_bytes,
    prepare_sliver,
    multiply,
};

}  // namespace saker::kernels::SAKER_ISA
