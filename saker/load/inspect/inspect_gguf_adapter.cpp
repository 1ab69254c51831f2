// SPDX-License-Identifier: Apache-2.0
#include "saker/load/inspect/inspect_gguf_adapter.h"

#include "saker/load/gguf/blocks/gguf_types.h"
#include "saker/load/gguf/gguf_file.h"
#include "saker/load/gguf/gguf_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace saker::load {
namespace {

// The largest rank; 0 without a matrix.
std::int64_t largest_rank(const gguf::Header& header) {
  std::int64_t rank = 0;
  for (const gguf::TensorEntry& entry : header.tensors) {
    if (entry.name.ends_with(".lora_b") && !entry.shape.empty()) {
      rank = std::max(rank, entry.shape.back());
    }
  }
  return rank;
}

// The base's name, or where it is.
std::string base_of(const gguf::Header& header) {
  for (const char* key : {"general.base_model.0.name", "general.base_model.0.repo_url"}) {
    if (const auto name = header.string(key)) {
      return std::string(*name);
    }
  }
  return {};
}

}  // namespace

std::optional<Inspection> inspect_gguf_adapter(const std::filesystem::path& path) {
  const gguf::JoinedParts joined = gguf::open_parts(path);
  const gguf::Header& header = joined.header;
  if (header.string("general.type") != "adapter") {
    return std::nullopt;
  }
  Inspection result;
  result.kind = PathKind::kAdapter;
  result.runnable = true;
  for (const gguf::Part& part : joined.parts) {
    result.file_bytes += part.bytes.size();
    result.files.push_back(part.mapped->path());
  }
  for (const gguf::TensorEntry& entry : header.tensors) {
    const std::string type(gguf::facts_of(entry.type).name);
    DTypeTotal& total = result.dtypes[type];
    total.tensors += 1;
    total.elements += entry.element_count;
    total.bytes += entry.end - entry.begin;
    result.parameters += entry.element_count;
    result.tensors.push_back({entry.name, type, entry.shape});
  }
  std::ranges::sort(result.tensors, {}, &TensorSummary::name);
  const std::int64_t rank = largest_rank(header);
  const double alpha = header.number("adapter.lora.alpha").value_or(0.0);
  result.adapter = {
      .type = fmt::format("GGUF {}", header.string("adapter.type").value_or("of no type")),
      .base_model = base_of(header),
      .rank = rank,
      .scale = rank > 0 ? alpha / static_cast<double>(rank) : 0.0,
  };
  return result;
}

}  // namespace saker::load
