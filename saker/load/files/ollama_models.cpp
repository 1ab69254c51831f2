// SPDX-License-Identifier: Apache-2.0
#include "saker/load/files/ollama_models.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/base/mapped_file.h"
#include "saker/base/utf8.h"
#include "saker/load/files/gguf_magic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

namespace saker::load {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRegistry = "registry.ollama.ai";
constexpr std::string_view kLibrary = "library";
constexpr std::string_view kLatest = "latest";
constexpr std::string_view kModelLayer = "application/vnd.ollama.image.model";
constexpr std::string_view kAdapterLayer = "application/vnd.ollama.image.adapter";
constexpr std::size_t kMaxManifestBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxPart = 128;
constexpr std::size_t kParts = 4;  // Host, owner, model, tag.
// A listing looks at no more entries than this.
constexpr std::size_t kMaxEntries = 20'000;

// A part of a name, which becomes part of a path.
bool is_part(std::string_view text) {
  return !text.empty() && text.size() <= kMaxPart && text.front() != '.' &&
         std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '-' || c == '_' || c == ':';
         });
}

using NameParts = std::array<std::string, kParts>;

// Host, owner, model and tag of a name as people type it.
NameParts parse_name(std::string_view name) {
  NameParts parts{std::string(kRegistry), std::string(kLibrary), {}, std::string(kLatest)};
  std::string_view rest = name;
  const std::size_t slash = rest.rfind('/');
  const std::size_t colon = rest.rfind(':');
  if (colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash)) {
    parts[3] = rest.substr(colon + 1);
    rest = rest.substr(0, colon);
  }
  for (std::size_t i = 3; i-- > 0;) {
    const std::size_t at = rest.rfind('/');
    parts[i] = at == std::string_view::npos ? rest : rest.substr(at + 1);
    if (at == std::string_view::npos) {
      rest = {};
      break;
    }
    rest = rest.substr(0, at);
  }
  require(
      rest.empty() && std::ranges::all_of(parts, is_part),
      ErrorCode::kInvalidArgument,
      "{} is no name of an ollama model, expected NAME, NAME:TAG or OWNER/NAME:TAG",
      quote(name)
  );
  return parts;
}

std::string shown_name(const NameParts& parts) {
  std::string name;
  if (parts[0] != kRegistry) {
    name = parts[0] + "/" + parts[1] + "/";
  } else if (parts[1] != kLibrary) {
    name = parts[1] + "/";
  }
  name += parts[2];
  return parts[3] == kLatest ? name : name + ":" + parts[3];
}

// The blob's file of a digest "sha256:<64 hexadecimal digits>".
fs::path blob_path(const fs::path& dir, std::string_view digest, const fs::path& manifest) {
  constexpr std::string_view kAlgorithm = "sha256:";
  constexpr std::size_t kDigits = 64;
  require(
      digest.starts_with(kAlgorithm) && digest.size() == kAlgorithm.size() + kDigits &&
          digest.find_first_not_of("0123456789abcdef", kAlgorithm.size()) == std::string_view::npos,
      ErrorCode::kCorruptData,
      "{}: a layer's digest is {}, expected sha256: and 64 hexadecimal digits",
      quote_path(manifest),
      quote(digest)
  );
  return dir / "blobs" / fmt::format("sha256-{}", digest.substr(kAlgorithm.size()));
}

// The only layer of a kind; null without one.
const Json* only_layer(const Json& layers, std::string_view kind, const fs::path& manifest) {
  const Json* found = nullptr;
  for (const Json& layer : layers) {
    require(
        layer.is_object(), ErrorCode::kCorruptData, "{}: a layer is no object", quote_path(manifest)
    );
    if (json_string(layer, "mediaType", "") == kind) {
      require(
          found == nullptr,
          ErrorCode::kUnsupported,
          "{}: holds several layers {}, expected one",
          quote_path(manifest),
          kind
      );
      found = &layer;
    }
  }
  return found;
}

fs::path weights_of(const fs::path& dir, const fs::path& manifest) {
  const std::string text = read_file(manifest, kMaxManifestBytes);
  const Json json = parse_json(text, quote_path(manifest));
  const auto layers = json.is_object() ? json.find("layers") : json.end();
  require(
      json.is_object() && layers != json.end() && layers->is_array(),
      ErrorCode::kCorruptData,
      "{}: is no manifest: expected an object with a list 'layers'",
      quote_path(manifest)
  );
  const Json* model = only_layer(*layers, kModelLayer, manifest);
  require(
      model != nullptr,
      ErrorCode::kUnsupported,
      "{}: its weights are no GGUF file: no layer {}",
      quote_path(manifest),
      kModelLayer
  );
  require(
      only_layer(*layers, kAdapterLayer, manifest) == nullptr,
      ErrorCode::kUnsupported,
      "{}: holds an adapter beside the weights, which is not taken from here",
      quote_path(manifest)
  );
  fs::path blob = blob_path(dir, json_string(*model, "digest", ""), manifest);
  std::error_code ignored;
  require(
      fs::is_regular_file(blob, ignored),
      ErrorCode::kNotFound,
      "{}: its weights {} are missing",
      quote_path(manifest),
      quote_path(blob)
  );
  require(
      has_gguf_magic(blob),
      ErrorCode::kUnsupported,
      "{}: its weights {} are no GGUF file",
      quote_path(manifest),
      quote_path(blob)
  );
  return blob;
}

fs::path absolute_folder(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value == '/' ? fs::path(value) : fs::path();
}

// Collects models of a folder and those below, host, owner, model and tag deep.
class Listing {
 public:
  explicit Listing(const fs::path& dir) : dir_(dir) {}

  std::vector<OllamaModel> run() {
    look(dir_ / "manifests", 0);
    std::ranges::sort(models_, {}, &OllamaModel::name);
    return std::move(models_);
  }

 private:
  void look(const fs::path& folder, std::size_t depth) {
    std::error_code failed;
    for (fs::directory_iterator at(folder, failed), end; !failed && at != end;
         at.increment(failed)) {
      parts_[depth] = at->path().filename().string();
      if (++entries_ > kMaxEntries) {
        return;
      }
      std::error_code ignored;
      const fs::file_status status = at->symlink_status(ignored);
      if (!is_part(parts_[depth])) {
        continue;
      }
      if (depth + 1 < kParts && fs::is_directory(status)) {
        look(at->path(), depth + 1);
      } else if (depth + 1 == kParts && fs::is_regular_file(status)) {
        add(at->path());
      }
    }
  }

  void add(const fs::path& manifest) {
    try {
      const fs::path blob = weights_of(dir_, manifest);
      std::error_code ignored;
      models_.push_back({shown_name(parts_), blob, fs::file_size(blob, ignored)});
    } catch (const Error&) {  // Named, it says why.
    }
  }

  const fs::path dir_;
  NameParts parts_;
  std::size_t entries_ = 0;
  std::vector<OllamaModel> models_;
};

}  // namespace

fs::path ollama_dir() {
  if (const fs::path folder = absolute_folder("OLLAMA_MODELS"); !folder.empty()) {
    return folder;
  }
  const fs::path home = absolute_folder("HOME");
  const std::array<fs::path, 2> candidates{
      home.empty() ? fs::path() : home / ".ollama" / "models", "/usr/share/ollama/.ollama/models"
  };
  for (const fs::path& folder : candidates) {
    std::error_code ignored;
    if (!folder.empty() && fs::is_directory(folder / "manifests", ignored)) {
      return folder;
    }
  }
  return {};
}

std::vector<OllamaModel> ollama_models() {
  const fs::path dir = ollama_dir();
  return dir.empty() ? std::vector<OllamaModel>() : Listing(dir).run();
}

fs::path find_ollama_model(std::string_view name) {
  const NameParts parts = parse_name(name);
  const fs::path dir = ollama_dir();
  require(
      !dir.empty(),
      ErrorCode::kNotFound,
      "{} can't be found: there is no folder of ollama (OLLAMA_MODELS, ~/.ollama/models)",
      quote(name)
  );
  fs::path manifest = dir / "manifests";
  for (const std::string& part : parts) {
    manifest /= part;
  }
  std::error_code ignored;
  require(
      fs::is_regular_file(manifest, ignored),
      ErrorCode::kNotFound,
      "ollama has no model {}: {} is missing; 'ollama pull {}' fetches it",
      quote(name),
      quote_path(manifest),
      shown_name(parts)
  );
  return weights_of(dir, manifest);
}

}  // namespace saker::load
