// SPDX-License-Identifier: Apache-2.0
#include "saker/load/files/lm_studio_models.h"

#include "saker/base/numbered_name.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>

namespace saker::load {
namespace {

namespace fs = std::filesystem;

// A listing looks at no more entries than this.
constexpr std::size_t kMaxEntries = 20'000;
constexpr std::string_view kSuffix = ".gguf";

// Entries of a folder by name; empty if it can't be read.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end;
       !failed && at != end && found.size() < kMaxEntries;
       at.increment(failed)) {
    found.push_back(at->path());
  }
  std::ranges::sort(found);
  return found;
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::uintmax_t size_of(const fs::path& file) {
  std::error_code failed;
  const std::uintmax_t bytes = fs::file_size(file, failed);
  return failed ? 0 : bytes;
}

class Listing {
 public:
  std::vector<LmStudioModel> run(const fs::path& dir) {
    for (const fs::path& owner : entries_of(dir)) {
      for (const fs::path& repo : entries_of(owner)) {
        if (entries_ < kMaxEntries && is_folder(repo)) {
          add(repo, owner.filename().string() + "/" + repo.filename().string());
        }
      }
    }
    return std::move(models_);
  }

 private:
  void add(const fs::path& repo, const std::string& name) {
    const std::vector<fs::path> files = entries_of(repo);
    entries_ += files.size() + 1;
    std::uintmax_t all = 0;
    std::size_t ggufs = 0;
    for (const fs::path& file : files) {
      all += size_of(file);
      const std::string shown = file.filename().string();
      if (!shown.ends_with(kSuffix)) {
        continue;
      }
      ++ggufs;
      const auto part = part_name(shown, kSuffix);
      if (shown.starts_with("mmproj") || (part && part->number != 1)) {
        continue;  // No model, or a further part of one.
      }
      std::uintmax_t bytes = size_of(file);
      for (int i = 2; part && i <= part->count && static_cast<std::size_t>(i) <= files.size();
           ++i) {
        bytes += size_of(repo / part->sibling(i));
      }
      models_.push_back({name + "/" + shown, file, bytes});
    }
    std::error_code ignored;
    if (ggufs == 0 && fs::is_regular_file(repo / "config.json", ignored)) {
      models_.push_back({name, repo, all});
    }
  }

  std::size_t entries_ = 0;
  std::vector<LmStudioModel> models_;
};

}  // namespace

fs::path lm_studio_dir() {
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home != '/') {
    return {};
  }
  const std::array<fs::path, 2> candidates{
      fs::path(home) / ".lmstudio" / "models", fs::path(home) / ".cache" / "lm-studio" / "models"
  };
  const auto* const found = std::ranges::find_if(candidates, is_folder);
  return found == candidates.end() ? fs::path() : *found;
}

std::vector<LmStudioModel> lm_studio_models() {
  const fs::path dir = lm_studio_dir();
  return dir.empty() ? std::vector<LmStudioModel>() : Listing().run(dir);
}

}  // namespace saker::load
