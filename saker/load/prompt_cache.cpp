// SPDX-License-Identifier: Apache-2.0
#include "saker/load/prompt_cache.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/load/cache_layout.h"
#include "saker/load/cache_tree.h"
#include "saker/load/files/host_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::load {
namespace {

using Leaves = std::vector<std::pair<std::vector<std::size_t>, CacheNode>>;

constexpr std::int64_t kMaxClassName = 64;

// The metadata entries "<group>.<rest>", by rest.
std::map<std::string_view, std::string_view> metadata_group(
    const FileMetadata& metadata, char group
) {
  std::map<std::string_view, std::string_view> entries;
  for (const auto& [key, value] : metadata) {
    if (key.size() > 2 && key[0] == group && key[1] == '.') {
      entries.emplace(std::string_view(key).substr(2), value);
    }
  }
  return entries;
}

FileMetadata caller_metadata(const FileMetadata& metadata, char group) {
  FileMetadata result;
  for (const auto& [key, value] : metadata_group(metadata, group)) {
    result.emplace(key, value);
  }
  return result;
}

// Class names by layer; every layer must have one.
std::vector<std::string_view> class_names(
    const FileMetadata& metadata, char group, std::string_view what
) {
  const auto entries = metadata_group(metadata, group);
  std::vector<std::string_view> names(entries.size());
  for (const auto& [key, name] : entries) {
    const auto path = parse_path(key);
    require(
        path && path->size() == 1 && path->front() < names.size(),
        ErrorCode::kCorruptData,
        "{}: class {} of layer {}, of {} layers",
        what,
        quote(name),
        quote(key),
        names.size()
    );
    names[path->front()] = name;
  }
  return names;
}

std::string text_of(const Tensor& tensor, std::string_view what) {
  const bool fits = tensor.shape.size() == 1 && tensor.shape[0] <= kMaxClassName;
  const auto codes = fits ? to_integers(tensor) : std::nullopt;
  std::string text;
  for (const std::int64_t code : codes.value_or(std::vector<std::int64_t>{0})) {
    require(code >= 0x20 && code < 0x7f, ErrorCode::kCorruptData, "{}: is not a class name", what);
    text += static_cast<char>(code);
  }
  return text;
}

// The value that a tensor stands for, by its type in the metadata.
CacheNode leaf(const Tensor& tensor, std::string_view type, std::string_view what) {
  if (type.empty()) {
    return {tensor};
  }
  if (type == "none") {
    return {};
  }
  if (type == "string") {
    return {text_of(tensor, what)};
  }
  require(type == "scalar", ErrorCode::kCorruptData, "{}: stands for {}", what, quote(type));
  const auto value = tensor.element_count() == 1 ? to_integers(tensor) : std::nullopt;
  require(
      value.has_value() && tensor.shape.empty(),
      ErrorCode::kCorruptData,
      "{}: dtype {} and shape {}, expected one integer",
      what,
      dtype_name(tensor.dtype),
      shape_text(tensor.shape)
  );
  if (tensor.dtype == DType::kBool) {
    return {value->front() != 0};
  }
  return {value->front()};
}

// The current format's types of tensors that are no arrays, by tensor name.
std::map<std::string_view, std::string_view> leaf_types(
    const FileMetadata& metadata, std::string_view what
) {
  std::map<std::string_view, std::string_view> types;
  const auto entries = metadata_group(metadata, '2');
  for (const auto& [key, name] : entries) {
    if (!key.ends_with(".0")) {
      continue;
    }
    const std::string type_key = std::string(key.substr(0, key.size() - 1)) + "1";
    const auto type = entries.find(type_key);
    require(
        type != entries.end() && types.emplace(name, type->second).second,
        ErrorCode::kCorruptData,
        "{}: metadata 2.{} for {} is repeated or incomplete",
        what,
        quote(key),
        quote(name)
    );
  }
  return types;
}

CacheNode::List state_tree(
    const TensorMap& tensors,
    const std::map<std::string_view, std::string_view>& types,
    std::size_t layers,
    std::string_view what
) {
  Leaves leaves;
  std::size_t typed = 0;
  for (const auto& [name, tensor] : tensors) {
    auto path = parse_path(name);
    const std::string place = fmt::format("{}: tensor {}", what, quote(name));
    require(path && path->size() >= 2, ErrorCode::kCorruptData, "{}: is no part of a cache", place);
    const auto type = types.find(name);
    typed += type != types.end() ? 1 : 0;
    leaves.emplace_back(
        *std::move(path), leaf(tensor, type != types.end() ? type->second : "", place)
    );
  }
  require(
      typed == types.size(),
      ErrorCode::kCorruptData,
      "{}: metadata tells of {} tensors, of which {} are there",
      what,
      types.size(),
      typed
  );
  return make_tree(std::move(leaves), layers, what);
}

// The meta strings of the classic format; "0.<layer>" = "" means none.
CacheNode::List meta_tree(const FileMetadata& metadata, std::size_t layers, std::string_view what) {
  Leaves leaves;
  for (const auto& [key, text] : metadata_group(metadata, '0')) {
    auto path = parse_path(key);
    if (!path || (path->size() == 1 && text.empty())) {
      continue;
    }
    leaves.emplace_back(*std::move(path), CacheNode{std::string(text)});
  }
  return make_tree(std::move(leaves), layers, fmt::format("{}: meta values", what));
}

// A layer's pages: a table of [index, bytes], then the bytes.
std::optional<cache::SerializedPages> pages_of(const CacheNode& node) {
  if (node.is_none()) {
    return std::nullopt;
  }
  const auto* parts = node.list();
  const bool whole = parts != nullptr && parts->size() == 2 && (*parts)[0].tensor() != nullptr &&
                     (*parts)[1].tensor() != nullptr;
  const auto numbers = whole ? to_integers(*(*parts)[0].tensor()) : std::nullopt;
  cache::SerializedPages pages;
  if (whole) {
    pages.bytes = *(*parts)[1].tensor();
  }
  require(
      numbers && numbers->size() % 2 == 0 && pages.bytes.dtype == DType::kUInt8,
      ErrorCode::kCorruptData,
      "its pages are not a table of integers and bytes"
  );
  for (std::size_t i = 0; i < numbers->size(); i += 2) {
    pages.pages.push_back({(*numbers)[i], (*numbers)[i + 1]});
  }
  return pages;
}

CacheNode page_node(const cache::SerializedPages& pages) {
  std::vector<std::int64_t> numbers;
  for (const auto& page : pages.pages) {
    numbers.insert(numbers.end(), {page.index, page.bytes});
  }
  const auto rows = static_cast<std::int64_t>(pages.pages.size());
  return {CacheNode::List{{int32_tensor({rows, 2}, numbers)}, {pages.bytes}}};
}

template <typename Read>
std::vector<cache::SerializedCache> read_layers(
    const std::vector<std::string_view>& classes, std::string_view what, Read read
) {
  std::vector<cache::SerializedCache> layers;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    try {
      layers.push_back(read(classes[i], i));
      cache::check_serialized(layers.back());
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: layer {}: {}", what, i, error.what()));
    }
  }
  return layers;
}

// The leaves of a layer's state, in the order of mlx-lm's flattening.
class Flattener {
 public:
  void add(const std::string& name, const CacheNode& node) {
    if (const auto* list = node.list()) {
      for (std::size_t i = 0; i < list->size(); ++i) {
        add(fmt::format("{}.{}", name, i), (*list)[i]);
      }
    } else if (const Tensor* tensor = node.tensor()) {
      tensors.emplace_back(name, *tensor);
    } else if (const auto* number = std::get_if<std::int64_t>(&node.value)) {
      add_typed(name, int32_tensor({}, std::array{*number}), "scalar");
    } else if (const auto* truth = std::get_if<bool>(&node.value)) {
      add_typed(name, bool_tensor(*truth), "scalar");
    } else if (const auto* text = node.text()) {
      const std::vector<std::int64_t> codes(text->begin(), text->end());
      add_typed(name, int32_tensor({static_cast<std::int64_t>(codes.size())}, codes), "string");
    } else {
      Tensor none;
      none.shape = {0};
      add_typed(name, std::move(none), "none");
    }
  }

  NamedTensors tensors;
  FileMetadata metadata = {{"2.0", ""}};

 private:
  void add_typed(const std::string& name, Tensor tensor, const std::string& type) {
    tensors.emplace_back(name, std::move(tensor));
    ++typed_;
    metadata[fmt::format("2.{}.0", typed_)] = name;
    metadata[fmt::format("2.{}.1", typed_)] = type;
  }

  std::size_t typed_ = 0;
};

}  // namespace

PromptCache parse_prompt_cache(
    const TensorMap& tensors, const FileMetadata& metadata, std::string_view what
) {
  PromptCache result;
  const auto sentinel = metadata.find("2.0");
  require(
      sentinel != metadata.end(),
      ErrorCode::kCorruptData,
      "{}: is no prompt cache: its metadata names no cache classes",
      what
  );
  if (sentinel->second.empty()) {
    const auto classes = class_names(metadata, '1', what);
    const std::size_t count = classes.size();
    const bool has_codes = std::ranges::any_of(classes, [](std::string_view name) {
      return name.starts_with("Quantized");
    });
    const std::size_t lists = has_codes ? 2 * count : count;
    const auto states = state_tree(tensors, leaf_types(metadata, what), lists, what);
    result.layers = read_layers(classes, what, [&](std::string_view name, std::size_t layer) {
      auto read = from_current(name, states[layer]);
      read.pages = has_codes ? pages_of(states[count + layer]) : std::nullopt;
      return read;
    });
    result.metadata = caller_metadata(metadata, '0');
  } else {
    result.format = CacheFormat::kClassic;
    const auto classes = class_names(metadata, '2', what);
    const auto states = state_tree(tensors, {}, classes.size(), what);
    const auto metas = meta_tree(metadata, classes.size(), what);
    result.layers = read_layers(classes, what, [&](std::string_view name, std::size_t layer) {
      return from_classic(name, states[layer], metas[layer]);
    });
    result.metadata = caller_metadata(metadata, '1');
  }
  require(!result.layers.empty(), ErrorCode::kCorruptData, "{}: has no layers", what);
  return result;
}

PromptCache read_prompt_cache(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path);
  const std::string what = quote_path(path);
  require(
      file->bytes().size() <= kMaxPromptCacheBytes,
      ErrorCode::kCorruptData,
      "{}: {} bytes, expected at most {}",
      what,
      file->bytes().size(),
      kMaxPromptCacheBytes
  );
  const auto header = parse_safetensors(file->bytes(), what);
  TensorMap tensors;
  for (const SafetensorsEntry& entry : header.entries) {
    tensors.emplace(entry.name, map_tensor(file, entry));
  }
  return parse_prompt_cache(tensors, header.metadata, what);
}

void write_prompt_cache(const std::filesystem::path& path, const PromptCache& cache) {
  Flattener flat;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < cache.layers.size(); ++i) {
    flat.metadata[fmt::format("1.{}", i)] = current_class(cache.layers[i].kind);
    flat.add(fmt::to_string(i), to_current(cache.layers[i]));
    if (cache.layers[i].pages) {
      flat.add(fmt::to_string(cache.layers.size() + i), page_node(*cache.layers[i].pages));
    }
  }
  for (const auto& [key, value] : cache.metadata) {
    flat.metadata["0." + key] = value;
  }
  for (const auto& [name, tensor] : flat.tensors) {
    bytes += tensor.nbytes();
  }
  require(
      bytes <= kMaxPromptCacheBytes - kMaxSafetensorsHeader,
      ErrorCode::kCapacity,
      "{}: {} bytes of rows, a prompt-cache file holds at most {}",
      quote_path(path),
      bytes,
      kMaxPromptCacheBytes - kMaxSafetensorsHeader
  );
  write_safetensors(path, flat.tensors, flat.metadata, FileReaders::kOwner);
}

}  // namespace saker::load
