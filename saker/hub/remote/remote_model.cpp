// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/remote/remote_model.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/hub/digest.h"
#include "saker/hub/http/fetcher.h"
#include "saker/hub/http/receiver.h"
#include "saker/hub/hub_session.h"
#include "saker/hub/pull_plan.h"
#include "saker/hub/remote_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::hub {
namespace {

constexpr int kParallel = 8;
constexpr std::size_t kMaxText = std::size_t{64} << 20;
constexpr std::size_t kMaxWeightFiles = 2000;

// Texts that describe a model. Tokenizers are large; it is enough that they exist.
constexpr std::array<std::string_view, 7> kTexts{
    "adapter_config.json",
    "chat_template.jinja",
    "chat_template.json",
    "config.json",
    "generation_config.json",
    "model.safetensors.index.json",
    "tokenizer_config.json",
};

// The beginning of one file, piece after piece.
class Beginning final : public Receiver {
 public:
  Beginning(RemoteFile file, std::string commit)
      : file_(std::move(file)),
        commit_(std::move(commit)),
        part_{.path = file_.path, .size = file_.size, .bytes = {}} {}

  const RemoteFile& file() const { return file_; }

  // Asks for all bytes before `end`.
  void want(std::uintmax_t end) { end_ = std::min(end, file_.size); }

  const RemotePart& part() const { return part_; }

  RemotePart take() { return std::move(part_); }

  std::uintmax_t have() const override { return part_.bytes.size(); }

  std::optional<std::uintmax_t> wanted_end() const override { return end_; }

  void check(const ResponseHead& head) override { check_answer(head, file_, commit_); }

  void begin(std::uintmax_t offset) override { part_.bytes.resize(offset); }

  void write(std::span<const std::byte> bytes) override {
    part_.bytes.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  bool is_complete() const override { return part_.bytes.size() == end_; }

 private:
  const RemoteFile file_;
  const std::string commit_;
  std::uintmax_t end_ = 0;
  RemotePart part_;
};

void check_digest(const Beginning& text) {
  const RemotePart& part = text.part();
  Digest digest(text.file().kind, part.size);
  digest.add(std::as_bytes(std::span(part.bytes)));
  const std::string found = digest.finish();
  require(
      found == text.file().digest,
      ErrorCode::kCorruptData,
      "{}: what came has the digest {}, expected {}",
      part.path,
      found,
      text.file().digest
  );
}

// Reads beginnings of files within a limit of bytes.
class Reading {
 public:
  Reading(Fetcher& fetcher, const ModelName& name, std::string commit, std::uintmax_t max_bytes)
      : fetcher_(fetcher), name_(name), commit_(std::move(commit)), left_(max_bytes) {}

  // Whole texts, verified by their digests.
  std::vector<RemotePart> texts(std::span<const RemoteFile> files) {
    std::vector<std::unique_ptr<Beginning>> texts;
    for (const RemoteFile& file : files) {
      require(
          file.size <= kMaxText,
          ErrorCode::kCapacity,
          "{}: has {} bytes, expected at most {}",
          quote(file.path),
          file.size,
          kMaxText
      );
      texts.push_back(beginning(file, file.size));
    }
    get(texts);
    std::ranges::for_each(texts, [](const auto& text) { check_digest(*text); });
    return take(texts);
  }

  // As many bytes of each file as `wanted` asks for, all files side by side.
  std::vector<RemotePart> heads(std::span<const RemoteFile> files, const WantedBytes& wanted) {
    std::vector<std::unique_ptr<Beginning>> all;
    for (const RemoteFile& file : files) {
      all.push_back(beginning(file, 0));
    }
    for (bool is_more = true; is_more;) {
      is_more = false;
      for (const auto& head : all) {
        const std::uintmax_t end = std::min(wanted(head->part()), head->file().size);
        if (end > head->have()) {
          count(end - head->have());
          head->want(end);
          is_more = true;
        }
      }
      get(all);
    }
    return take(all);
  }

 private:
  std::unique_ptr<Beginning> beginning(const RemoteFile& file, std::uintmax_t end) {
    count(end);
    auto made = std::make_unique<Beginning>(file, commit_);
    made->want(end);
    return made;
  }

  void count(std::uintmax_t bytes) {
    require(
        bytes <= left_,
        ErrorCode::kCapacity,
        "{}: its texts and headers are too large to be looked at before it is pulled",
        to_string(name_)
    );
    left_ -= bytes;
  }

  void get(std::span<const std::unique_ptr<Beginning>> parts) {
    std::vector<Fetcher::Wanted> wanted;
    for (const auto& part : parts) {
      if (!part->is_complete()) {
        wanted.push_back({
            .path = file_address(name_.repo, commit_, part->file().path),
            .what = fmt::format("{}: {}", to_string(name_), part->file().path),
            .receiver = part.get(),
        });
      }
    }
    fetcher_.get_all(wanted, kParallel);
  }

  static std::vector<RemotePart> take(std::span<const std::unique_ptr<Beginning>> parts) {
    std::vector<RemotePart> taken;
    for (const auto& part : parts) {
      taken.push_back(part->take());
    }
    return taken;
  }

  Fetcher& fetcher_;
  const ModelName& name_;
  const std::string commit_;
  std::uintmax_t left_;
};

void append(std::vector<RemotePart>& parts, std::vector<RemotePart> more) {
  std::ranges::move(more, std::back_inserter(parts));
}

// True for drafts and adapters beside the model, which are judged when they are fetched.
bool is_beside(std::string_view path) {
  return path.starts_with("draft/") || path.starts_with("adapter/") ||
         path.starts_with("adapters/");
}

// Reads the texts of the model itself; tokenizers are only noted as present.
void read_texts(Reading& reading, std::span<const RemoteFile> files, RemoteModel& model) {
  std::vector<RemoteFile> texts;
  for (const RemoteFile& file : files) {
    if (std::ranges::find(kTexts, file.path) != kTexts.end()) {
      texts.push_back(file);
    } else if (file.path.find('/') == std::string::npos) {
      model.parts.push_back({.path = file.path, .size = file.size, .bytes = {}});
    }
  }
  append(model.parts, reading.texts(texts));
}

std::vector<RemoteFile> weights_of(std::span<const RemoteFile> files, const RemoteModel& model) {
  std::vector<RemoteFile> own;
  std::ranges::copy_if(files, std::back_inserter(own), [](const RemoteFile& file) {
    return !is_beside(file.path) && !file.path.ends_with(".npz");
  });
  return choose_weights(own, [&](const RemoteFile& index) {
    const auto found = std::ranges::find(model.parts, index.path, &RemotePart::path);
    return found == model.parts.end() ? std::string() : found->bytes;
  });
}

std::uintmax_t sum(std::span<const RemoteFile> files) {
  return std::accumulate(
      files.begin(),
      files.end(),
      std::uintmax_t{0},
      [](std::uintmax_t bytes, const RemoteFile& file) { return bytes + file.size; }
  );
}

}  // namespace

RemoteModel read_remote_model(
    const ModelName& name, const WantedBytes& wanted, const RemoteModelOptions& options
) {
  HubSession session(
      name, {.limit = options.limit, .retrying = options.retrying, .stop = options.stop}
  );
  const PullChoice choice = choose_files(session.files(), name, {});
  RemoteModel model{.commit = session.commit(), .parts = {}, .gguf = choice.gguf};
  Reading reading(session.fetcher(), name, model.commit, options.max_bytes);
  std::vector<RemoteFile> weights = choice.files;
  if (choice.gguf.empty()) {
    read_texts(reading, choice.files, model);
    weights = weights_of(session.files(), model);
    model.files = choice.files.size();
    model.bytes = sum(choice.files);
  }
  require(
      weights.size() <= kMaxWeightFiles,
      ErrorCode::kCapacity,
      "{}: has {} files of weights, expected at most {}",
      to_string(name),
      weights.size(),
      kMaxWeightFiles
  );
  model.files += weights.size();
  model.bytes += sum(weights);
  append(model.parts, reading.heads(weights, wanted));
  return model;
}

}  // namespace saker::hub
