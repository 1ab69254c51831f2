// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/storage/packed_weight.h"

#include "saker/base/error.h"
#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/cpu/dispatch/linear_bodies.h"
#include "saker/kernels/cpu/runtime/thread_pool.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/layout/block_format.h"
#include "saker/kernels/packing/pack.h"
#include "saker/kernels/packing/weight_bytes.h"
#include "saker/kernels/storage/packed_storage.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace saker::kernels {
namespace {

// Keeps every index of a weight, in bytes of any layout, far from overflow.
constexpr std::int64_t kMaxExtent = std::int64_t{1} << 28;

// True for codes in MLX's layout.
bool is_quantized(WeightKind kind) {
  return kind >= WeightKind::kAffine && !is_block(kind);
}

std::string describe(const Tensor& tensor) {
  return fmt::format("{} [{}]", dtype_name(tensor.dtype), fmt::join(tensor.shape, ", "));
}

bool is_known(const WeightFormat& format) {
  const int bits = format.bits;
  const int group = format.group_size;
  if (is_block(format.kind)) {
    return on_cpu() && format == weight_format(block_kind(format.kind));
  }
  switch (format.kind) {
    case WeightKind::kAffine:
      return (bits == 2 || bits == 3 || bits == 4 || bits == 5 || bits == 6 || bits == 8) &&
             (group == 32 || group == 64 || group == 128);
    case WeightKind::kMxfp4:
      return bits == 4 && group == 32;
    case WeightKind::kNvfp4:
      return bits == 4 && group == 16;
    case WeightKind::kMxfp8:
      return bits == 8 && group == 32;
    default:
      return true;
  }
}

DType value_dtype(WeightKind kind) {
  return is_block(kind)                 ? DType::kUInt8
         : kind == WeightKind::kFloat32 ? DType::kFloat32
         : kind == WeightKind::kFloat16 ? DType::kFloat16
                                        : DType::kBFloat16;
}

bool has_shape(const Tensor& tensor, std::int64_t rows, std::int64_t columns) {
  return tensor.shape.size() == 2 && tensor.shape[0] == rows && tensor.shape[1] == columns;
}

// Checks scales and biases beside a quantized weight of `rows` rows with `groups` groups per row.
void check_scales(
    const WeightTensors& part, const WeightFormat& format, std::int64_t rows, std::int64_t groups
) {
  const bool affine = format.kind == WeightKind::kAffine;
  require(
      part.scales.has_value(),
      ErrorCode::kCorruptData,
      "[{}] got no scales, expected some",
      part.name
  );
  const DType dtype = part.scales->dtype;
  const bool dtype_fits =
      affine ? dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16
             : dtype == DType::kUInt8;
  require(
      dtype_fits && has_shape(*part.scales, rows, groups),
      ErrorCode::kCorruptData,
      "[{}] got scales {}, expected {} [{}, {}]",
      part.name,
      describe(*part.scales),
      affine ? "F32, F16 or BF16" : "U8",
      rows,
      groups
  );
  if (!affine) {
    require(
        !part.biases, ErrorCode::kCorruptData, "[{}] got biases, this format has none", part.name
    );
    return;
  }
  require(
      part.biases.has_value(),
      ErrorCode::kCorruptData,
      "[{}] got no biases, expected some",
      part.name
  );
  require(
      part.biases->dtype == dtype && has_shape(*part.biases, rows, groups),
      ErrorCode::kCorruptData,
      "[{}] got biases {}, expected {} [{}, {}] like the scales",
      part.name,
      describe(*part.biases),
      dtype_name(dtype),
      rows,
      groups
  );
}

// Columns of a row of blocks.
std::int64_t block_columns(const WeightTensors& part, const WeightFormat& format) {
  const BlockFormat block = block_format(block_kind(format.kind));
  const std::int64_t bytes = part.weight.shape[1];
  require(
      bytes % block.bytes == 0,
      ErrorCode::kCorruptData,
      "[{}] got {} bytes a row, expected whole blocks of {}",
      part.name,
      bytes,
      block.bytes
  );
  return bytes / block.bytes * block.columns;
}

// Checks one part and returns its K.
std::int64_t checked_columns(const WeightTensors& part, const WeightFormat& format) {
  const Tensor& weight = part.weight;
  const bool quantized = is_quantized(format.kind);
  const DType dtype = quantized ? DType::kUInt32 : value_dtype(format.kind);
  require(
      weight.dtype == dtype && weight.shape.size() == 2 && weight.shape[0] > 0 &&
          weight.shape[1] > 0 && weight.shape[0] <= kMaxExtent && weight.shape[1] <= kMaxExtent,
      ErrorCode::kCorruptData,
      "[{}] got {}, expected {} with two extents from 1 to {}",
      part.name,
      describe(weight),
      dtype_name(dtype),
      kMaxExtent
  );
  if (!quantized) {
    require(
        !part.scales && !part.biases,
        ErrorCode::kCorruptData,
        "[{}] got scales or biases beside {}, expected none",
        part.name,
        describe(weight)
    );
    return is_block(format.kind) ? block_columns(part, format) : weight.shape[1];
  }
  const std::int64_t columns = weight.shape[1] * 32 / format.bits;
  require(
      weight.shape[1] * 32 % format.bits == 0 && columns % format.group_size == 0,
      ErrorCode::kCorruptData,
      "[{}] got {} words a row, expected whole groups of {} codes of {} bits",
      part.name,
      weight.shape[1],
      format.group_size,
      format.bits
  );
  check_scales(part, format, weight.shape[0], columns / format.group_size);
  return columns;
}

std::size_t packed_bytes(const PackedMatrix& matrix) {
  return matrix.block_bytes() * static_cast<std::size_t>(matrix.blocks());
}

void release(const WeightTensors& part) {
  const auto release_one = [](const Tensor& tensor) {
    if (tensor.release) {
      tensor.release();
    }
  };
  release_one(part.weight);
  if (part.scales) {
    release_one(*part.scales);
  }
  if (part.biases) {
    release_one(*part.biases);
  }
}

// Packs all rows. Memory holds a slice of the mapped file beside them: pages that leave it too early
// are loaded again.
void pack_in_slices(
    const std::vector<WeightTensors>& parts,
    const WeightFormat& format,
    const PackedMatrix& matrix,
    std::byte* to
) {
  constexpr std::size_t kSliceBytes = std::size_t{8} << 20;
  const int step = static_cast<int>(std::max<std::size_t>(kSliceBytes / matrix.block_bytes(), 1));
  for (int first = 0; first < matrix.blocks(); first += step) {
    pack_row_blocks(parts, format, matrix, first, std::min(step, matrix.blocks() - first), to);
    std::ranges::for_each(parts, release);
  }
}

// Gives a storage with a known layout its bytes: the parts' own if they can stay in place, else a
// packed copy.
void fill_storage(
    const std::vector<WeightTensors>& parts,
    const WeightFormat& format,
    PackedWeight::Storage& storage
) {
  PackedMatrix& matrix = storage.matrix;
  if (kernel_table().linear->in_place && fits_in_place(parts, matrix)) {
    for (const WeightTensors& part : parts) {
      storage.bytes.push_back(part.weight.data);
    }
    storage.block_places = find_blocks(parts);
    matrix.block_places = storage.block_places.data();
    return;
  }
  const std::shared_ptr<std::byte> bytes = allocate_weight_bytes(packed_bytes(matrix));
  storage.bytes.push_back(bytes);
  matrix.data = bytes.get();
  pack_in_slices(parts, format, matrix, bytes.get());
}

mx::Dtype mlx_dtype(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return mx::float32;
    case DType::kFloat16:
      return mx::float16;
    case DType::kBFloat16:
      return mx::bfloat16;
    case DType::kUInt8:
      return mx::uint8;
    default:
      return mx::uint32;
  }
}

// A copy in MLX's memory: the mapped bytes may be unaligned.
mx::array to_array(const Tensor& tensor) {
  auto memory = mx::allocator::malloc(tensor.nbytes());
  std::memcpy(mx::allocator::Buffer(memory.buffer()).raw_ptr(), tensor.data.get(), tensor.nbytes());
  mx::Shape shape;
  for (const std::int64_t extent : tensor.shape) {
    shape.push_back(static_cast<int>(extent));
  }
  return mx::array(std::move(memory), shape, mlx_dtype(tensor.dtype));
}

MlxWeight join_arrays(const std::vector<WeightTensors>& parts) {
  std::vector<mx::array> weights;
  std::vector<mx::array> scales;
  std::vector<mx::array> biases;
  for (const WeightTensors& part : parts) {
    weights.push_back(to_array(part.weight));
    if (part.scales) {
      scales.push_back(to_array(*part.scales));
    }
    if (part.biases) {
      biases.push_back(to_array(*part.biases));
    }
  }
  const auto joined = [](const std::vector<mx::array>& arrays) -> std::optional<mx::array> {
    return arrays.empty() ? std::nullopt : std::optional(mx::concatenate(arrays, 0));
  };
  MlxWeight weight = {mx::concatenate(weights, 0), joined(scales), joined(biases)};
  mx::eval(weight.weight);
  return weight;
}

}  // namespace

const char* mlx_mode(WeightKind kind) {
  switch (kind) {
    case WeightKind::kMxfp4:
      return "mxfp4";
    case WeightKind::kNvfp4:
      return "nvfp4";
    case WeightKind::kMxfp8:
      return "mxfp8";
    default:
      return "affine";
  }
}

mx::Dtype operand_dtype(const MlxWeight& arrays) {
  const mx::Dtype dtype = arrays.scales ? arrays.scales->dtype() : arrays.weight.dtype();
  return dtype == mx::bfloat16 || dtype == mx::uint8 ? mx::bfloat16 : mx::float32;
}

mx::array dequantize_arrays(const MlxWeight& arrays, const WeightFormat& format) {
  if (!is_quantized(format.kind)) {
    return mx::astype(arrays.weight, mx::float32);
  }
  const bool affine = format.kind == WeightKind::kAffine;
  const auto wide = [&](const std::optional<mx::array>& array) {
    return affine && array ? std::optional(mx::astype(*array, mx::float32)) : array;
  };
  return mx::dequantize(
      arrays.weight,
      *wide(arrays.scales),
      wide(arrays.biases),
      format.group_size,
      format.bits,
      mlx_mode(format.kind),
      std::nullopt,
      mx::float32
  );
}

PackedWeight::PackedWeight(
    int rows, int columns, const WeightFormat& format, std::shared_ptr<const Storage> storage
)
    : rows_(rows), columns_(columns), format_(format), storage_(std::move(storage)) {}

PackedWeight PackedWeight::pack(
    const std::vector<WeightTensors>& parts, const WeightFormat& format
) {
  require(!parts.empty(), ErrorCode::kInternal, "[weight] got no part to pack");
  require(
      is_known(format),
      ErrorCode::kUnsupported,
      "[{}] {} quantization with {} bits in groups of {} is unknown",
      parts.front().name,
      mlx_mode(format.kind),
      format.bits,
      format.group_size
  );
  const std::int64_t columns = checked_columns(parts.front(), format);
  std::int64_t rows = 0;
  for (const WeightTensors& part : parts) {
    const std::int64_t part_columns = checked_columns(part, format);
    require(
        part_columns == columns && (!part.scales || part.scales->dtype == parts[0].scales->dtype),
        ErrorCode::kCorruptData,
        "[{}] got parts {} and {} to join, expected equal rows",
        part.name,
        describe(parts.front().weight),
        describe(part.weight)
    );
    rows += part.weight.shape[0];
  }
  require(
      rows <= kMaxExtent,
      ErrorCode::kCorruptData,
      "[{}] got {} rows, expected at most {}",
      parts.front().name,
      rows,
      kMaxExtent
  );
  auto storage = std::make_shared<Storage>();
  if (on_cpu()) {
    const Tensor& typed = parts[0].scales ? *parts[0].scales : parts[0].weight;
    PackedMatrix& matrix = storage->matrix;
    matrix = packed_layout(
        static_cast<int>(rows),
        static_cast<int>(columns),
        format,
        typed.dtype,
        kernel_table().linear->orders
    );
    fill_storage(parts, format, *storage);
  } else {
    storage->arrays = join_arrays(parts);
    std::ranges::for_each(parts, release);
  }
  return {static_cast<int>(rows), static_cast<int>(columns), format, std::move(storage)};
}

std::size_t PackedWeight::nbytes() const {
  if (!storage_->arrays) {
    return packed_bytes(storage_->matrix);
  }
  const MlxWeight& arrays = *storage_->arrays;
  return arrays.weight.nbytes() + (arrays.scales ? arrays.scales->nbytes() : 0) +
         (arrays.biases ? arrays.biases->nbytes() : 0);
}

mx::array PackedWeight::dequantized() const {
  return dequantized_rows(0, rows_);
}

mx::array PackedWeight::dequantized_rows(int first, int count) const {
  if (!storage_->arrays) {
    const PackedMatrix& matrix = storage_->matrix;
    const auto columns = static_cast<std::size_t>(columns_);
    auto memory = mx::allocator::malloc(static_cast<std::size_t>(count) * columns * sizeof(float));
    auto* values = static_cast<float*>(mx::allocator::Buffer(memory.buffer()).raw_ptr());
    thread_pool().run(count, [&](int row) {
      unpack_row(matrix, first + row, values + static_cast<std::size_t>(row) * columns);
    });
    return mx::array(std::move(memory), {count, columns_}, mx::float32);
  }
  const auto rows = [&](const mx::array& array) {
    return mx::slice(array, {first, 0}, {first + count, array.shape(1)});
  };
  const auto optional_rows = [&](const std::optional<mx::array>& array) {
    return array ? std::optional(rows(*array)) : std::nullopt;
  };
  const MlxWeight& arrays = *storage_->arrays;
  return dequantize_arrays(
      {rows(arrays.weight), optional_rows(arrays.scales), optional_rows(arrays.biases)}, format_
  );
}

}  // namespace saker::kernels
