// SPDX-License-Identifier: Apache-2.0
#include "saker/load/export/imatrix_file.h"

#include "saker/base/error.h"
#include "saker/base/mapped_file.h"
#include "saker/base/utf8.h"
#include "saker/load/export/gguf_writer.h"
#include "saker/load/gguf/gguf_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

namespace saker::load::gguf {
namespace {

constexpr std::string_view kType = "general.type";
constexpr std::string_view kImatrix = "imatrix";
constexpr std::string_view kDatasets = "imatrix.datasets";
constexpr std::string_view kChunkCount = "imatrix.chunk_count";
constexpr std::string_view kChunkSize = "imatrix.chunk_size";
constexpr std::string_view kSums = ".in_sum2";
constexpr std::string_view kCounts = ".counts";

// The float32 numbers at any address.
std::vector<float> floats_of(std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) {
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  }
  return values;
}

void check_amounts(
    std::span<const float> values, std::string_view of, std::string_view name, std::string_view what
) {
  const auto wrong = std::ranges::find_if(values, [](float value) {
    return !std::isfinite(value) || value < 0.0F;
  });
  require(
      wrong == values.end(),
      ErrorCode::kCorruptData,
      "{}: {} has {} among its {}, expected finite numbers of at least 0",
      what,
      quote(name),
      wrong == values.end() ? 0.0F : *wrong,
      of
  );
}

std::uint32_t small_count(const Header& header, std::string_view key) {
  const std::int64_t value = header.integer(key).value_or(0);
  require(
      value >= 0 && value <= std::numeric_limits<std::uint32_t>::max(),
      ErrorCode::kCorruptData,
      "{}: '{}' is {}, expected 0 to 2^32 - 1",
      header.what(),
      key,
      value
  );
  return static_cast<std::uint32_t>(value);
}

// The tensors of one entry.
struct EntryTensors {
  const TensorEntry* sums = nullptr;
  const TensorEntry* counts = nullptr;
};

std::map<std::string, EntryTensors, std::less<>> entry_tensors(const Header& header) {
  std::map<std::string, EntryTensors, std::less<>> result;
  for (const TensorEntry& tensor : header.tensors) {
    const std::string_view name = tensor.name;
    for (const std::string_view end : {kSums, kCounts}) {
      if (!name.ends_with(end)) {
        continue;
      }
      require(
          tensor.type == TensorType::kFloat32,
          ErrorCode::kCorruptData,
          "{}: {} is not float32, expected float32 in an importance matrix",
          header.what(),
          quote(name)
      );
      EntryTensors& entry = result[std::string(name.substr(0, name.size() - end.size()))];
      (end == kSums ? entry.sums : entry.counts) = &tensor;
    }
  }
  return result;
}

ImportanceEntry read_tensors(
    std::span<const std::byte> file,
    const std::string& name,
    const EntryTensors& tensors,
    std::string_view what
) {
  require(
      tensors.sums != nullptr && tensors.counts != nullptr,
      ErrorCode::kCorruptData,
      "{}: {} lacks its tensor {}",
      what,
      quote(name),
      tensors.sums == nullptr ? kSums : kCounts
  );
  require(
      tensors.sums->element_count % tensors.counts->element_count == 0,
      ErrorCode::kCorruptData,
      "{}: {} has {} sums and {} counts, expected a multiple of the counts",
      what,
      quote(name),
      tensors.sums->element_count,
      tensors.counts->element_count
  );
  const auto values = [&](const TensorEntry& tensor) {
    return floats_of(file.subspan(tensor.begin, tensor.end - tensor.begin));
  };
  return {.sums = values(*tensors.sums), .counts = values(*tensors.counts)};
}

ImportanceFile parse_gguf_form(std::span<const std::byte> file, std::string_view what) {
  const Header header = parse_gguf(file, what);
  const auto type = header.string(kType);
  require(
      type == kImatrix,
      ErrorCode::kCorruptData,
      "{}: '{}' is {}, expected '{}'",
      what,
      kType,
      type ? quote(*type) : "missing",
      kImatrix
  );
  ImportanceFile result;
  result.chunk_count = small_count(header, kChunkCount);
  result.chunk_size = small_count(header, kChunkSize);
  for (const std::string_view dataset : header.strings(kDatasets)) {
    result.datasets.emplace_back(dataset);
  }
  for (const auto& [name, tensors] : entry_tensors(header)) {
    result.entries.emplace(name, read_tensors(file, name, tensors, what));
  }
  return result;
}

// Reads a legacy file from front to back, never past its end.
class LegacyReader {
 public:
  LegacyReader(std::span<const std::byte> bytes, std::string_view what)
      : bytes_(bytes), what_(what) {}

  bool at_end() const { return bytes_.empty(); }

  std::span<const std::byte> take(std::size_t count, std::string_view of) {
    require(
        count <= bytes_.size(),
        ErrorCode::kCorruptData,
        "{}: {} needs {} bytes, but {} are left: no importance matrix, or a cut one",
        what_,
        of,
        count,
        bytes_.size()
    );
    const auto taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }

  std::int32_t number(std::string_view of) {
    std::int32_t value = 0;
    std::memcpy(&value, take(sizeof(value), of).data(), sizeof(value));
    return value;
  }

  // A count, at least `low`.
  std::size_t count(std::int32_t low, std::string_view of) {
    const std::int32_t value = number(of);
    require(
        value >= low,
        ErrorCode::kCorruptData,
        "{}: {} is {}, expected at least {}: no importance matrix, or a broken one",
        what_,
        of,
        value,
        low
    );
    return static_cast<std::size_t>(value);
  }

  std::string text(std::size_t length, std::string_view of) {
    const auto bytes = take(length, of);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  std::string name() {
    std::string text = this->text(count(1, "the length of a name"), "a name");
    const bool has_control =
        std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
    require(
        text.size() <= kMaxNameBytes && !has_control && !find_invalid_utf8(text),
        ErrorCode::kCorruptData,
        "{}: the name of an entry is {}, expected a printable name",
        what_,
        quote(text)
    );
    return text;
  }

 private:
  std::span<const std::byte> bytes_;
  std::string_view what_;
};

ImportanceFile parse_legacy_form(std::span<const std::byte> file, std::string_view what) {
  LegacyReader reader(file, what);
  ImportanceFile result;
  const std::size_t entries = reader.count(1, "the number of entries");
  for (std::size_t i = 0; i < entries; ++i) {
    const std::string name = reader.name();
    const std::int32_t chunks = reader.number("the number of chunks of an entry");
    const std::size_t values = reader.count(1, "the number of values of an entry");
    ImportanceEntry entry;
    entry.sums = floats_of(reader.take(values * sizeof(float), "an entry's values"));
    entry.counts = {static_cast<float>(std::max(chunks, 1))};  // 0: the values are means.
    require(
        result.entries.emplace(name, std::move(entry)).second,
        ErrorCode::kCorruptData,
        "{}: {} is there twice",
        what,
        quote(name)
    );
  }
  if (!reader.at_end()) {
    result.chunk_count = static_cast<std::uint32_t>(reader.count(0, "the number of chunks"));
  }
  if (!reader.at_end()) {
    const std::size_t length = reader.count(0, "the length of the data set's name");
    result.datasets.push_back(reader.text(length, "the data set's name"));
  }
  return result;
}

Metadata metadata_of(const ImportanceFile& file) {
  return {
      {std::string(kType), std::string(kImatrix)},
      {std::string(kDatasets), file.datasets},
      {std::string(kChunkCount), file.chunk_count},
      {std::string(kChunkSize), file.chunk_size},
  };
}

// llama.cpp leaves out a last dimension of 1, which is the first one here.
std::vector<std::int64_t> entry_shape(std::size_t experts, std::size_t columns) {
  const auto width = static_cast<std::int64_t>(columns);
  return experts == 1 ? std::vector<std::int64_t>{width}
                      : std::vector<std::int64_t>{static_cast<std::int64_t>(experts), width};
}

}  // namespace

std::vector<float> ImportanceEntry::means() const {
  std::vector<float> result(sums.size());
  const std::size_t columns = sums.size() / std::max<std::size_t>(counts.size(), 1);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const float count = counts[i / columns];
    result[i] = count > 0.0F ? sums[i] / count : 1.0F;
  }
  return result;
}

ImportanceFile parse_imatrix(std::span<const std::byte> file, std::string_view what) {
  constexpr std::string_view kMagic = "GGUF";
  const bool is_gguf =
      file.size() >= kMagic.size() && std::memcmp(file.data(), kMagic.data(), kMagic.size()) == 0;
  ImportanceFile result = is_gguf ? parse_gguf_form(file, what) : parse_legacy_form(file, what);
  require(
      !result.entries.empty(),
      ErrorCode::kCorruptData,
      "{}: has no entries, expected an importance matrix",
      what
  );
  for (const auto& [name, entry] : result.entries) {
    check_amounts(entry.sums, "sums", name, what);
    check_amounts(entry.counts, "counts", name, what);
  }
  return result;
}

ImportanceFile read_imatrix(const std::filesystem::path& path) {
  return parse_imatrix(MappedFile::open(path)->bytes(), path.string());
}

void write_imatrix(const std::filesystem::path& path, const ImportanceFile& file) {
  std::vector<PlannedBlocks> planned;
  for (const auto& [name, entry] : file.entries) {
    assert(!entry.counts.empty() && entry.sums.size() % entry.counts.size() == 0);
    const std::size_t experts = entry.counts.size();
    const auto add = [&, &weight = name](std::string_view end, std::size_t columns) {
      planned.push_back({
          .name = fmt::format("{}{}", weight, end),
          .type = TensorType::kFloat32,
          .shape = entry_shape(experts, columns),
      });
    };
    add(kSums, entry.sums.size() / experts);
    add(kCounts, 1);
  }
  GgufWriter writer(path, metadata_of(file), planned);
  std::size_t index = 0;
  for (const auto& [name, entry] : file.entries) {
    writer.write(index++, 0, std::as_bytes(std::span(entry.sums)));
    writer.write(index++, 0, std::as_bytes(std::span(entry.counts)));
  }
  writer.commit();
}

}  // namespace saker::load::gguf
