// SPDX-License-Identifier: Apache-2.0
// `saker list`: the models in the hub cache, and the named ones.
#include "saker/base/utf8.h"
#include "saker/cli/hub/size_text.h"
#include "saker/cli/io/output.h"
#include "saker/cli/io/result_json.h"
#include "saker/cli/options/command.h"
#include "saker/hub/cached_models.h"
#include "saker/hub/environment.h"
#include "saker/load/files/named_models.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace saker::cli {
namespace {

// Tables show this many digits of a commit.
constexpr std::size_t kShownDigits = 8;

using Row = std::array<std::string, 5>;

Json named_json(const std::vector<load::NamedModel>& models) {
  Json list = Json::array();
  for (const load::NamedModel& model : models) {
    list.push_back({
        {"name", model.name},
        {"from", model.from},
        {"path", model.path.native()},
        {"bytes", model.bytes},
        {"modified", time_text(model.modified)},
    });
  }
  return list;
}

Json ggufs_json(const hub::CachedRevision& revision) {
  Json list = Json::array();
  for (const hub::CachedGguf& gguf : revision.ggufs) {
    list.push_back({{"label", gguf.label}, {"files", gguf.paths}, {"bytes", gguf.bytes}});
  }
  return list;
}

Json list_json(const std::filesystem::path& cache, const std::vector<hub::CachedModel>& models) {
  Json list = Json::array();
  for (const hub::CachedModel& model : models) {
    Json revisions = Json::array();
    for (const hub::CachedRevision& revision : model.revisions) {
      revisions.push_back({
          {"gguf", ggufs_json(revision)},
          {"commit", revision.commit},
          {"refs", revision.refs},
          {"path", revision.path.native()},
          {"files", revision.files},
          {"bytes", revision.bytes},
          {"modified", time_text(revision.modified)},
      });
    }
    list.push_back({
        {"repo", model.repo},
        {"path", model.path.native()},
        {"bytes", model.bytes},
        {"incomplete_bytes", model.incomplete_bytes},
        {"revisions", std::move(revisions)},
    });
  }
  return {
      {"cache", cache.native()},
      {"models", std::move(list)},
      {"named", named_json(load::named_models())},
  };
}

// Adds a row per GGUF model, and one for everything else.
void add_rows(
    std::vector<Row>& rows, const hub::CachedModel& model, const hub::CachedRevision& revision
) {
  const std::string commit = revision.commit.substr(0, kShownDigits);
  const std::string refs = revision.refs.empty()
                               ? commit
                               : fmt::format("{} ({})", fmt::join(revision.refs, ", "), commit);
  const std::string changed = time_text(revision.modified).substr(0, 10);
  std::uintmax_t others = revision.bytes;
  for (const hub::CachedGguf& gguf : revision.ggufs) {
    others -= std::min(others, gguf.bytes);
    rows.push_back({
        fmt::format("{}:{}", model.repo, gguf.label),
        refs,
        size_text(gguf.bytes),
        changed,
        (revision.path / gguf.paths.front()).native(),
    });
  }
  if (revision.ggufs.empty() || revision.has_safetensors) {
    rows.push_back({model.repo, refs, size_text(others), changed, revision.path.native()});
  }
}

std::vector<Row> table_rows(const std::vector<hub::CachedModel>& models) {
  std::vector<Row> rows{{"MODEL", "REVISION", "SIZE", "CHANGED", "PATH"}};
  for (const load::NamedModel& model : load::named_models()) {
    rows.push_back({
        model.name,
        "from " + quote(model.from),
        size_text(model.bytes),
        time_text(model.modified).substr(0, 10),
        model.path.native(),
    });
  }
  for (const hub::CachedModel& model : models) {
    for (const hub::CachedRevision& revision : model.revisions) {
      add_rows(rows, model, revision);
    }
    if (model.incomplete_bytes > 0) {
      rows.push_back({
          model.repo,
          "(interrupted)",
          size_text(model.incomplete_bytes),
          "",
          model.path.native(),
      });
    }
  }
  return rows;
}

std::string table_text(const std::vector<Row>& rows) {
  std::array<std::size_t, 5> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      text += fmt::format("{:<{}}  ", row[i], widths[i]);
    }
    text += row.back() + "\n";
  }
  return text;
}

}  // namespace

void add_list(CLI::App& app, Action& action) {
  auto json = std::make_shared<bool>(false);
  CLI::App& command = *app.add_subcommand("list", "List fetched models and those made with create");
  command.add_flag("--json", *json, "Print one JSON object");
  command.callback([json, &action] {
    action = [json] {
      const auto cache = hub::cache_dir();
      const auto models = hub::cached_models(cache);
      if (*json) {
        print(dump_line(list_json(cache, models)));
        return 0;
      }
      const auto rows = table_rows(models);
      print(table_text(rows));
      if (rows.size() == 1) {
        print_error("no model is here yet; 'saker pull REPO' fetches one from the hub\n");
      }
      return 0;
    };
  });
}

}  // namespace saker::cli
