// SPDX-License-Identifier: Apache-2.0
#include "saker/load/files/model_writer.h"

#include "saker/base/error.h"
#include "saker/base/files/atomic_file.h"
#include "saker/base/json/json.h"
#include "saker/base/json/json_members.h"
#include "saker/base/utf8.h"
#include "saker/load/files/weight_files.h"
#include "saker/text/chat_template.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace saker::load {
namespace {

namespace fs = std::filesystem;

// Files that are copied with a model, beside configuration and weights.
constexpr std::array<std::string_view, 11> kCopied = {
    "generation_config.json",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template.json",
    "chat_template.jinja",
    "config_sentence_transformers.json",
};

[[noreturn]] void fail_write(const fs::path& path, int error) {
  throw Error(
      ErrorCode::kCapacity,
      fmt::format("{}: cannot be written: {}", quote_path(path), system_reason(error))
  );
}

void write_at(
    int descriptor, std::size_t at, std::span<const std::byte> bytes, const fs::path& of
) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      fail_write(of, written < 0 ? errno : ENOSPC);
    }
    at += static_cast<std::size_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void require_room(const fs::path& dir, std::size_t bytes) {
  std::error_code failed;
  const auto space = fs::space(dir, failed);
  require(
      failed || space.available >= bytes,
      ErrorCode::kCapacity,
      "{}: {} bytes are free, expected at least {}",
      quote_path(dir),
      space.available,
      bytes
  );
}

}  // namespace

ModelWriter::ModelWriter(
    const fs::path& dir, std::vector<PlannedTensor> tensors, std::size_t max_shard_bytes
)
    : folder_(dir), tensors_(std::move(tensors)) {
  cut_shards(max_shard_bytes);
  try {
    require_room(folder_.path(), total_bytes_);
    for (Shard& shard : shards_) {
      open_shard(shard);
    }
  } catch (...) {
    close_shards();
    throw;
  }
}

ModelWriter::~ModelWriter() {
  close_shards();
}

void ModelWriter::cut_shards(std::size_t max_shard_bytes) {
  std::size_t shard_bytes = 0;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const std::size_t bytes = tensors_[i].nbytes();
    if (shards_.empty() || shard_bytes + bytes > max_shard_bytes) {
      shards_.push_back({.name = {}, .descriptor = -1, .first = i, .count = 0});
      shard_bytes = 0;
    }
    shards_.back().count += 1;
    shard_bytes += bytes;
    total_bytes_ += bytes;
    shard_of_.push_back(shards_.size() - 1);
  }
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    shards_[i].name = shards_.size() == 1
                          ? "model.safetensors"
                          : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards_.size());
  }
}

void ModelWriter::open_shard(Shard& shard) {
  const fs::path path = folder_.path() / shard.name;
  shard.descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (shard.descriptor < 0) {
    fail_write(path, errno);
  }
  const std::span<const PlannedTensor> held(tensors_.data() + shard.first, shard.count);
  const std::string prefix = safetensors_prefix(held, {{"format", "mlx"}});
  write_at(shard.descriptor, 0, std::as_bytes(std::span(prefix)), path);
  std::size_t at = prefix.size();
  for (const PlannedTensor& tensor : held) {
    begin_.push_back(at);
    at += tensor.nbytes();
  }
}

void ModelWriter::close_shards() {
  for (Shard& shard : shards_) {
    if (shard.descriptor >= 0) {
      ::close(shard.descriptor);
      shard.descriptor = -1;
    }
  }
}

void ModelWriter::write(std::size_t index, std::size_t offset, std::span<const std::byte> bytes) {
  assert(offset + bytes.size() <= tensors_.at(index).nbytes());
  const Shard& shard = shards_.at(shard_of_.at(index));
  write_at(shard.descriptor, begin_.at(index) + offset, bytes, folder_.path() / shard.name);
  written_ += bytes.size();
}

void ModelWriter::write_text(std::string_view name, std::string_view text) const {
  AtomicFile file(folder_.path() / name);
  file.write(text);
  file.commit();
}

std::vector<std::string> ModelWriter::copy_files(const fs::path& source) const {
  std::vector<std::string> copied;
  const auto copy = [&](const fs::path& from) {
    const fs::path name = from.lexically_relative(source);
    std::error_code failed;
    fs::create_directories((folder_.path() / name).parent_path(), failed);
    fs::copy_file(from, folder_.path() / name, failed);
    require(
        !failed,
        ErrorCode::kCapacity,
        "{}: cannot be copied: {}",
        quote_path(from),
        failed.message()
    );
    copied.push_back(name.string());
  };
  for (const std::string_view name : kCopied) {
    std::error_code failed;
    if (fs::is_regular_file(source / name, failed)) {
      copy(source / name);
    }
  }
  for (const std::string& name : text::additional_chat_templates(source)) {
    copy(source / name);
  }
  return copied;
}

std::string ModelWriter::index_text(std::int64_t parameters) const {
  std::map<std::string, std::string> shard_names;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    shard_names.emplace(tensors_[i].name, shards_[shard_of_[i]].name);
  }
  const Json index = {
      {"metadata", {{"total_size", total_bytes_}, {"total_parameters", parameters}}},
      {"weight_map", json_object(shard_names)},
  };
  return index.dump(4, ' ', false, Json::error_handler_t::replace);
}

void ModelWriter::commit(std::int64_t parameters) {
  require(
      written_ == total_bytes_,
      ErrorCode::kInternal,
      "[model writer] {} bytes were written, expected {}",
      written_.load(),
      total_bytes_
  );
  write_text(kIndexName, index_text(parameters));
  for (const Shard& shard : shards_) {
    if (::fsync(shard.descriptor) != 0) {
      fail_write(folder_.path() / shard.name, errno);
    }
  }
  close_shards();
  folder_.commit();
}

}  // namespace saker::load
