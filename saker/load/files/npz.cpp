// SPDX-License-Identifier: Apache-2.0
#include "saker/load/files/npz.h"

#include "saker/base/archive/zip_archive.h"
#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

namespace saker::load {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxHeader = 1 << 16;
constexpr std::size_t kMaxAxes = 8;

struct NpyHeader {
  std::string descr;
  bool fortran = false;
  std::vector<std::int64_t> shape;
};

// Parses a Python dictionary with three keys: {'descr': '<f4', 'fortran_order': False, 'shape':
// (2,)}
class HeaderReader {
 public:
  HeaderReader(std::string_view text, std::string_view what) : text_(text), what_(what) {}

  NpyHeader read() {
    NpyHeader header;
    int keys = 0;
    expect('{');
    while (!take('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr") {
        header.descr = descr();
      } else if (key == "fortran_order") {
        header.fortran = truth();
      } else if (key == "shape") {
        header.shape = shape();
      } else {
        fail();
      }
      ++keys;
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (keys != 3 || header.descr.empty() || !text_.empty()) {
      fail();
    }
    return header;
  }

 private:
  [[noreturn]] void fail() const {
    throw Error(ErrorCode::kCorruptData, fmt::format("{}: has no header of NumPy's", what_));
  }

  void skip_space() {
    const auto first = text_.find_first_not_of(" \n\t\r");
    text_.remove_prefix(first == std::string_view::npos ? text_.size() : first);
  }

  bool take(char c) {
    skip_space();
    if (text_.empty() || text_.front() != c) {
      return false;
    }
    text_.remove_prefix(1);
    return true;
  }

  void expect(char c) {
    if (!take(c)) {
      fail();
    }
  }

  std::string quoted() {
    skip_space();
    const char mark = text_.empty() ? '\0' : text_.front();
    const auto end = mark == '\'' || mark == '"' ? text_.find(mark, 1) : std::string_view::npos;
    if (end == std::string_view::npos) {
      fail();
    }
    std::string result(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return result;
  }

  // A list would be a record's fields.
  std::string descr() {
    skip_space();
    require(
        !text_.starts_with('['),
        ErrorCode::kUnsupported,
        "{}: holds records, expected numbers",
        what_
    );
    return quoted();
  }

  bool truth() {
    skip_space();
    for (const auto& [word, value] : {std::pair{"True", true}, std::pair{"False", false}}) {
      if (text_.starts_with(word)) {
        text_.remove_prefix(std::string_view(word).size());
        return value;
      }
    }
    fail();
  }

  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> sizes;
    expect('(');
    while (!take(')')) {
      skip_space();
      std::int64_t size = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), size);
      if (error != std::errc() || size < 0 || sizes.size() == kMaxAxes) {
        fail();
      }
      sizes.push_back(size);
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      take('L');  // Python 2 wrote long integers like this.
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return sizes;
  }

  std::string_view text_;
  std::string_view what_;
};

DType dtype_of(std::string_view descr, std::string_view what) {
  require(
      descr.find('O') == std::string_view::npos,
      ErrorCode::kUnsupported,
      "{}: holds pickled objects, expected numbers",
      what
  );
  constexpr std::array<std::pair<std::string_view, DType>, 13> kKinds = {{
      {"<f4", DType::kFloat32},
      {"<f2", DType::kFloat16},
      {"<f8", DType::kFloat64},
      {"<V2", DType::kBFloat16},
      {"|V2", DType::kBFloat16},
      {"<u4", DType::kUInt32},
      {"|u1", DType::kUInt8},
      {"<i4", DType::kInt32},
      {"<i8", DType::kInt64},
      {"<i2", DType::kInt16},
      {"|i1", DType::kInt8},
      {"<u2", DType::kUInt16},
      {"|b1", DType::kBool},
  }};
  for (const auto& [name, dtype] : kKinds) {
    if (descr == name) {
      return dtype;
    }
  }
  throw Error(
      ErrorCode::kUnsupported,
      fmt::format("{}: has the dtype {}, expected little-endian numbers", what, quote(descr))
  );
}

// Elements in C order, from Fortran order, in which the first axis runs fastest.
std::shared_ptr<const std::byte> reordered(
    const std::byte* from, const std::vector<std::int64_t>& shape, std::size_t count, DType dtype
) {
  const std::size_t size = dtype_size(dtype);
  const auto memory = std::make_shared<std::vector<std::byte>>(count * size);
  std::vector<std::size_t> strides(shape.size());  // In C order.
  std::size_t stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= static_cast<std::size_t>(shape[axis]);
  }
  std::vector<std::int64_t> index(shape.size(), 0);
  std::size_t to = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(memory->data() + to * size, from + i * size, size);
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      to += strides[axis];
      if (++index[axis] < shape[axis]) {
        break;
      }
      to -= strides[axis] * static_cast<std::size_t>(shape[axis]);
      index[axis] = 0;
    }
  }
  return {memory, memory->data()};
}

// The header's text, and the offset of the numbers.
std::pair<std::string_view, std::size_t> split_file(
    std::span<const std::byte> file, std::string_view what
) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(text[at]); };
  const std::size_t begin = text.size() > 6 && text[6] != 1 ? 12 : 10;
  require(
      text.starts_with(kMagic) && text.size() >= begin && byte(6) >= 1 && byte(6) <= 3,
      ErrorCode::kCorruptData,
      "{}: is no array of NumPy's",
      what
  );
  std::size_t size = byte(8) | (std::size_t{byte(9)} << 8U);
  if (begin == 12) {
    size |= (std::size_t{byte(10)} << 16U) | (std::size_t{byte(11)} << 24U);
  }
  require(
      size <= kMaxHeader && begin + size <= text.size(),
      ErrorCode::kCorruptData,
      "{}: has a header of {} bytes in {}",
      what,
      size,
      text.size()
  );
  return {text.substr(begin, size), begin + size};
}

}  // namespace

Tensor parse_npy(std::shared_ptr<const std::vector<std::byte>> file, std::string_view what) {
  const auto [text, begin] = split_file(*file, what);
  const NpyHeader header = HeaderReader(text, what).read();
  Tensor tensor;
  tensor.dtype = dtype_of(header.descr, what);
  tensor.shape = header.shape;
  const std::size_t left = (file->size() - begin) / dtype_size(tensor.dtype);
  const bool empty = std::ranges::find(header.shape, 0) != header.shape.end();
  std::size_t count = empty ? 0 : 1;
  for (const std::int64_t extent : header.shape) {
    const auto size = static_cast<std::size_t>(extent);
    require(
        empty || count <= left / size,
        ErrorCode::kCorruptData,
        "{}: has shape {} and only {} elements",
        what,
        shape_text(header.shape),
        left
    );
    count *= size;
  }
  require(
      begin + count * dtype_size(tensor.dtype) == file->size(),
      ErrorCode::kCorruptData,
      "{}: has shape {} and {} elements",
      what,
      shape_text(header.shape),
      left
  );
  const std::byte* data = file->data() + begin;
  if (header.fortran && header.shape.size() > 1 && count > 0) {
    tensor.data = reordered(data, header.shape, count, tensor.dtype);
  } else {
    tensor.data = std::shared_ptr<const std::byte>(std::move(file), data);
  }
  return tensor;
}

TensorMap read_npz(const std::filesystem::path& path) {
  constexpr std::string_view kSuffix = ".npy";
  ZipArchive archive = ZipArchive::open(path);
  TensorMap tensors;
  for (std::size_t i = 0; i < archive.names().size(); ++i) {
    const std::string& entry = archive.names()[i];
    const std::string what = fmt::format("{}: {}", quote_path(path), quote(entry));
    require(entry.ends_with(kSuffix), ErrorCode::kCorruptData, "{}: is no array of NumPy's", what);
    tensors.emplace(
        entry.substr(0, entry.size() - kSuffix.size()), parse_npy(archive.read(i), what)
    );
  }
  return tensors;
}

}  // namespace saker::load
