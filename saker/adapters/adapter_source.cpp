// SPDX-License-Identifier: Apache-2.0
#include "saker/adapters/adapter_source.h"

#include "saker/adapters/source_parts.h"
#include "saker/base/blake2b.h"
#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/hub/cached_path.h"
#include "saker/hub/environment.h"
#include "saker/hub/model_name.h"
#include "saker/load/files/npz.h"
#include "saker/models/image_parts.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

namespace saker::adapters {
namespace {

std::string identity_of(const AdapterFiles& files) {
  Blake2b hash;
  hash.add(files.config.dump());  // In the file's order: it decides between patterns.
  for (const auto& [name, tensor] : files.tensors) {
    hash.add(fmt::format("\n{} {} {}\n", Json(name).dump(), dtype_name(tensor.dtype), tensor.shape)
    );
    hash.add(tensor.bytes());
  }
  return hash.hex();
}

AdapterFiles read_files(const std::filesystem::path& dir, std::string_view weights) {
  std::error_code ignored;
  require(
      std::filesystem::exists(dir / kAdapterConfig, ignored),
      ErrorCode::kNotFound,
      "{}: holds {} but no {}",
      quote_path(dir),
      weights,
      kAdapterConfig
  );
  AdapterFiles files;
  files.where = (dir / weights).string();
  files.config = read_json_file(dir / kAdapterConfig);
  require(
      files.config.is_object(),
      ErrorCode::kCorruptData,
      "{}: got {}, expected an object",
      (dir / kAdapterConfig).string(),
      describe_json(files.config)
  );
  files.former = weights == kMlxFormerWeights;
  files.tensors =
      files.former ? load::read_npz(dir / weights) : load::read_safetensors(dir / weights);
  require(!files.tensors.empty(), ErrorCode::kCorruptData, "{}: holds no tensor", files.where);
  return files;
}

// Explains why a folder without readable weights can't be used.
[[noreturn]] void refuse_folder(const std::filesystem::path& dir) {
  const std::string where = quote_path(dir);
  require(
      !std::filesystem::exists(dir / "adapter_model.bin"),
      ErrorCode::kUnsupported,
      "{}: adapter_model.bin holds pickled objects, expected adapter_model.safetensors",
      where
  );
  throw Error(
      ErrorCode::kNotFound,
      fmt::format("{}: no adapter, expected {} or {}", where, kMlxWeights, kPeftWeights)
  );
}

// The format by the names of the tensors, whatever file they are in.
AdapterFormat form_of(const load::TensorMap& tensors, AdapterFormat otherwise) {
  for (const auto& [name, tensor] : tensors) {
    if (name.ends_with(".lora_a") || name.ends_with(".lora_b")) {
      return AdapterFormat::kMlx;
    }
    if (name.starts_with("base_model.") || name.find(".lora_A.") != std::string::npos ||
        name.find(".lora_B.") != std::string::npos) {
      return AdapterFormat::kPeft;
    }
  }
  return otherwise;
}

// Drops modules that a language model doesn't have; returns the warning, if any.
std::vector<std::string> leave_out_images(AdapterFiles& files) {
  std::string first;
  const auto count = std::erase_if(files.tensors, [&](const auto& entry) {
    const bool images = models::is_of_images(module_name(entry.first));
    if (images && first.empty()) {
      first = entry.first;
    }
    return images;
  });
  require(
      !files.tensors.empty(),
      ErrorCode::kUnsupported,
      "{}: changes only parts for images or sound ({}), which are not run",
      files.where,
      quote(first)
  );
  if (count == 0) {
    return {};
  }
  return {fmt::format(
      "{}: {} tensors are of parts for images or sound and not used: {}{}",
      files.where,
      count,
      quote(first),
      count > 1 ? ", ..." : ""
  )};
}

// Checks some rows at a time: an embedding's table may be most of a model.
void check_finite(const std::string& name, const Tensor& tensor) {
  constexpr std::int64_t kRows = 512;
  const std::int64_t all_rows = tensor.shape.front();
  for (std::int64_t first = 0; first < all_rows; first += kRows) {
    const auto values = to_floats(rows_of(tensor, first, std::min(kRows, all_rows - first)));
    const auto broken = std::ranges::find_if(values, [](float v) { return !std::isfinite(v); });
    require(
        broken == values.end(),
        ErrorCode::kCorruptData,
        "[{}] element {} is {}, expected finite numbers",
        name,
        first * (tensor.element_count() / all_rows) + (broken - values.begin()),
        broken == values.end() ? 0.0F : *broken
    );
  }
}

}  // namespace

std::filesystem::path adapter_folder(const std::filesystem::path& name) {
  if (load::is_gguf_file(name)) {
    return name;
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(name, ignored)) {
    return load::lone_gguf_file(name).value_or(name);
  }
  const auto repo = hub::parse_model_name(name.native());
  const auto cached = repo ? hub::cached_path(hub::cache_dir(), *repo) : std::nullopt;
  require(
      cached.has_value(),
      ErrorCode::kNotFound,
      "{}: no folder or GGUF file with an adapter{}",
      quote_path(name),
      repo ? ", and not in the hub cache: it has to be pulled first" : ""
  );
  return *cached;
}

Tensor narrowed(const Tensor& tensor) {
  return tensor.dtype == DType::kFloat64 ? float_tensor(tensor.shape, to_floats(tensor)) : tensor;
}

Tensor checked_tensor(const std::string& name, const Tensor& tensor, std::size_t dimensions) {
  const bool shaped = dimensions > 0 && tensor.shape.size() == dimensions &&
                      std::ranges::all_of(tensor.shape, [](auto extent) { return extent > 0; });
  require(
      shaped,
      ErrorCode::kCorruptData,
      "[{}] shape {}, expected {} extents of at least 1",
      name,
      shape_text(tensor.shape),
      std::max(dimensions, std::size_t{1})
  );
  const auto is_float = [](DType dtype) {
    return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16 ||
           dtype == DType::kFloat64;
  };
  require(
      is_float(tensor.dtype),
      ErrorCode::kCorruptData,
      "[{}] dtype {}, expected F32, F16, BF16 or F64",
      name,
      dtype_name(tensor.dtype)
  );
  check_finite(name, tensor);
  return narrowed(tensor);
}

Tensor rows_of(const Tensor& tensor, std::int64_t first, std::int64_t count) {
  Tensor rows = tensor;
  rows.shape.front() = count;
  const auto row_bytes = tensor.nbytes() / static_cast<std::size_t>(tensor.shape.front());
  rows.data = std::shared_ptr<const std::byte>(
      tensor.data, tensor.data.get() + static_cast<std::size_t>(first) * row_bytes
  );
  rows.release = nullptr;
  return rows;
}

Tensor float_tensor(std::vector<std::int64_t> shape, std::vector<float> values) {
  const auto memory = std::make_shared<const std::vector<float>>(std::move(values));
  Tensor result;
  result.shape = std::move(shape);
  result.data =
      std::shared_ptr<const std::byte>(memory, reinterpret_cast<const std::byte*>(memory->data()));
  return result;
}

Tensor transposed(const Tensor& matrix) {
  const std::size_t rows = static_cast<std::size_t>(matrix.shape.at(0));
  const std::size_t columns = static_cast<std::size_t>(matrix.shape.at(1));
  const std::size_t size = dtype_size(matrix.dtype);
  const auto memory = std::make_shared<std::vector<std::byte>>(matrix.nbytes());
  const std::byte* from = matrix.data.get();
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column, from += size) {
      std::memcpy(memory->data() + (column * rows + row) * size, from, size);
    }
  }
  Tensor result;
  result.dtype = matrix.dtype;
  result.shape = {matrix.shape[1], matrix.shape[0]};
  result.data = std::shared_ptr<const std::byte>(memory, memory->data());
  return result;
}

void check_low_rank(const std::string& name, const LowRank& low_rank) {
  require(
      low_rank.down.data != nullptr && low_rank.up.data != nullptr,
      ErrorCode::kCorruptData,
      "[{}] only one of the two low-rank matrices is there",
      name
  );
  const auto rank = low_rank.down.shape.at(low_rank.embedding ? 1 : 0);
  require(
      low_rank.up.shape.at(1) == rank,
      ErrorCode::kCorruptData,
      "[{}] low-rank matrices of ranks {} and {}",
      name,
      rank,
      low_rank.up.shape.at(1)
  );
  const auto& tokens = low_rank.by_token ? low_rank.down : low_rank.up;
  const auto fits = [&](const std::optional<Tensor>& vector, const Tensor& matrix) {
    return !vector || vector->shape.front() == matrix.shape.front();
  };
  require(
      fits(low_rank.bias, low_rank.up) && fits(low_rank.magnitude, tokens),
      ErrorCode::kCorruptData,
      "[{}] bias or magnitudes of another size than the {} outputs",
      name,
      low_rank.up.shape.front()
  );
}

std::string_view module_name(std::string_view path) {
  constexpr std::array<std::string_view, 3> kPrefixes{"base_model.", "model.", "language_model."};
  bool stripped = true;
  while (stripped) {
    stripped = false;
    for (const auto prefix : kPrefixes) {
      if (path.starts_with(prefix)) {
        path.remove_prefix(prefix.size());
        stripped = true;
      }
    }
  }
  return path;
}

AdapterSource read_adapter(const std::filesystem::path& name) {
  const std::filesystem::path dir = adapter_folder(name);
  return naming_folder(dir, [&] {
    if (load::is_gguf_file(dir)) {
      return read_gguf_adapter(dir);
    }
    const auto weights = load::find_adapter_weights(dir);
    if (!weights) {
      refuse_folder(dir);
    }
    AdapterFiles files = read_files(dir, weights->file);
    std::string identity = identity_of(files);
    auto warnings = leave_out_images(files);
    const bool mlx = form_of(files.tensors, weights->form) == AdapterFormat::kMlx;
    AdapterSource source = mlx ? read_mlx(std::move(files)) : read_peft(std::move(files));
    source.identity = std::move(identity);
    source.dir = dir;
    source.warnings = std::move(warnings);
    return source;
  });
}

}  // namespace saker::adapters
