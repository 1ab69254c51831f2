// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/score/logits_file.h"

#include "saker/base/error.h"
#include "saker/base/tensor.h"
#include "saker/base/utf8.h"
#include "saker/load/files/safetensors_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace saker::cli {
namespace {

// The header of https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, version
// 1.0.
std::string npy_prefix(std::size_t rows, std::size_t columns) {
  constexpr std::size_t kAlignment = 64;
  constexpr std::size_t kBefore = 10;
  std::string header =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, columns);
  const std::size_t size = kBefore + header.size() + 1;
  header.append((kAlignment - size % kAlignment) % kAlignment, ' ');
  header += '\n';
  std::string prefix("\x93NUMPY\x01\x00", 8);
  prefix += static_cast<char>(header.size() & 0xFFU);
  prefix += static_cast<char>(header.size() >> 8U);
  return prefix + header;
}

std::string safetensors_prefix(
    const std::vector<engine::View>& views, std::int64_t rows, std::int64_t columns
) {
  std::vector<load::PlannedTensor> tensors;
  for (std::size_t i = 0; i < std::max(views.size(), std::size_t{1}); ++i) {
    const std::string name = views.size() > 1 ? "logits." + views[i].key : "logits";
    tensors.push_back({name, DType::kFloat32, {rows, columns}});
  }
  tensors.push_back({"tokens", DType::kInt32, {rows}});
  return load::safetensors_prefix(tensors, {});
}

}  // namespace

LogitsFile::LogitsFile(
    const std::filesystem::path& path,
    const std::vector<engine::View>& views,
    const std::vector<std::int32_t>& tokens,
    int vocab_size
)
    : file_(path) {
  const std::string ending = path.extension().string();
  require(
      ending == ".safetensors" || ending == ".npy",
      ErrorCode::kInvalidArgument,
      "--logits {}: expected a name that ends in .safetensors or .npy",
      quote_path(path)
  );
  const bool npy = ending == ".npy";
  require(
      !npy || views.size() <= 1,
      ErrorCode::kInvalidArgument,
      "--logits {}: {} views, expected one; a .safetensors file takes several",
      quote_path(path),
      views.size()
  );
  const auto columns = static_cast<std::size_t>(vocab_size);
  row_bytes_ = columns * sizeof(float);
  view_bytes_ = tokens.size() * row_bytes_;
  const std::string prefix =
      npy ? npy_prefix(tokens.size(), columns)
          : safetensors_prefix(views, static_cast<std::int64_t>(tokens.size()), vocab_size);
  file_.write(prefix);
  begin_ = prefix.size();
  if (!npy) {
    const std::size_t end = begin_ + std::max(views.size(), std::size_t{1}) * view_bytes_;
    file_.write_at(end, std::as_bytes(std::span(tokens)));
  }
}

void LogitsFile::write(std::size_t view, std::size_t row, std::span<const float> logits) {
  file_.write_at(begin_ + view * view_bytes_ + row * row_bytes_, std::as_bytes(logits));
}

}  // namespace saker::cli
