// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/doctor/checkup.h"

#include "saker/base/error.h"
#include "saker/base/instruction_set.h"
#include "saker/base/utf8.h"
#include "saker/cli/doctor/machine.h"
#include "saker/cli/hub/size_text.h"
#include "saker/cli/usage/config_file.h"
#include "saker/cli/usage/environment.h"
#include "saker/engine/measures/backend_facts.h"
#include "saker/hub/cached_models.h"
#include "saker/hub/environment.h"
#include "saker/hub/http/fetcher.h"
#include "saker/hub/http/web_address.h"
#include "saker/load/files/lm_studio_models.h"
#include "saker/load/files/model_dir.h"
#include "saker/load/files/named_models.h"
#include "saker/load/files/ollama_models.h"
#include "saker/load/files/program_path.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

extern char** environ;  // NOLINT(readability-redundant-declaration): not every system declares it.

namespace saker::cli {
namespace {

constexpr std::chrono::milliseconds kPatience{5000};
constexpr std::string_view kNone = "none";

// A row whose JSON is its text.
DoctorRow row(std::string name, std::string text) {
  Json value = text;
  return {std::move(name), std::move(text), std::move(value)};
}

// A row of what may fail: the reason is its text.
template <typename Look>
DoctorRow tried(std::string name, const Look& look) {
  try {
    return look();
  } catch (const std::exception& error) {
    return {std::move(name), fmt::format("error: {}", error.what()), {{"error", error.what()}}};
  }
}

std::string compiler() {
#if defined(__clang__)
  return fmt::format("clang {}.{}", __clang_major__, __clang_minor__);
#else
  return fmt::format("g++ {}.{}", __GNUC__, __GNUC_MINOR__);
#endif
}

DoctorSection program_section(const engine::BackendFacts& backend) {
  return {
      "program",
      {
          row("saker", fmt::format("{} ({})", SAKER_VERSION, compiler())),
          row("mlx", backend.mlx_version),
          row("path", load::program_path().native()),
      }
  };
}

DoctorRow sets_row() {
  std::vector<std::string> names;
  for (const InstructionSet set : runnable_sets()) {
    names.emplace_back(name_of(set));
  }
  const std::string used(name_of(instruction_set()));
  const bool is_forced = std::getenv("SAKER_CPU") != nullptr;
  return {
      "instruction sets",
      fmt::format(
          "{}; in use: {}{}", fmt::join(names, ", "), used, is_forced ? " (SAKER_CPU)" : ""
      ),
      {{"runnable", names}, {"used", used}}
  };
}

DoctorRow memory_row(const Machine& machine) {
  std::string text = size_text(machine.memory_bytes);
  if (machine.usable_bytes < machine.memory_bytes) {
    text += fmt::format(", a container's limit of {}", size_text(machine.usable_bytes));
  }
  if (machine.available_bytes > 0) {
    text += fmt::format(", {} available", size_text(machine.available_bytes));
  }
  if (!machine.huge_pages.empty()) {
    text += fmt::format(", huge pages: {}", machine.huge_pages);
  }
  return {
      "memory",
      std::move(text),
      {{"bytes", machine.memory_bytes},
       {"usable_bytes", machine.usable_bytes},
       {"available_bytes", machine.available_bytes},
       {"huge_pages", machine.huge_pages}}
  };
}

DoctorRow limits_row(const Machine& machine) {
  std::vector<std::string> texts;
  Json values = Json::object();
  for (const Limit& limit : machine.limits) {
    values[limit.name] = limit.value ? Json(*limit.value) : Json(nullptr);
    if (limit.value) {
      texts.push_back(fmt::format("{} {}", limit.name, *limit.value));
    }
  }
  return {
      "limits",
      texts.empty() ? std::string(kNone) : fmt::format("{}", fmt::join(texts, ", ")),
      std::move(values)
  };
}

DoctorSection machine_section(const Machine& machine, const engine::BackendFacts& backend) {
  std::string cores = fmt::format("{} of {}", machine.processors, machine.machine_processors);
  if (!machine.processor_quota.empty()) {
    cores += fmt::format(", a container's quota of {}", machine.processor_quota);
  }
  std::string gpu = backend.gpu.empty() ? std::string(kNone) : backend.gpu;
  if (!machine.gpu_driver.empty()) {
    gpu += fmt::format(" ({})", machine.gpu_driver);
  }
  return {
      "machine",
      {
          row("system", machine.system),
          row("processor", machine.processor),
          {"cores",
           std::move(cores),
           {{"usable", machine.processors},
            {"machine", machine.machine_processors},
            {"quota", machine.processor_quota}}},
          tried("instruction sets", sets_row),
          memory_row(machine),
          limits_row(machine),
          row("gpu", std::move(gpu)),
      }
  };
}

// A folder, the number of models in it, and free room on its disk.
DoctorRow folder_row(
    std::string name, const std::filesystem::path& folder, std::optional<std::size_t> models
) {
  if (folder.empty()) {
    return {std::move(name), std::string(kNone), nullptr};
  }
  const auto room = free_bytes(folder);
  std::string text = quote_path(folder);
  if (models) {
    text += fmt::format(", {} model{}", *models, *models == 1 ? "" : "s");
  }
  text += room ? fmt::format(", {} free", size_text(*room)) : std::string();
  return {
      std::move(name),
      std::move(text),
      {{"path", folder.native()},
       {"models", models ? Json(*models) : Json(nullptr)},
       {"free_bytes", room ? Json(*room) : Json(nullptr)}}
  };
}

DoctorSection models_section() {
  return {
      "models",
      {
          tried(
              "bundled", [] { return folder_row("bundled", load::demo_model_dir(), std::nullopt); }
          ),
          tried(
              "hub cache",
              [] {
                const auto cache = hub::cache_dir();
                return folder_row("hub cache", cache, hub::cached_models(cache).size());
              }
          ),
          tried(
              "named models",
              [] {
                return folder_row(
                    "named models", load::named_models_dir(), load::named_models().size()
                );
              }
          ),
          tried(
              "ollama",
              [] { return folder_row("ollama", load::ollama_dir(), load::ollama_models().size()); }
          ),
          tried(
              "LM Studio",
              [] {
                return folder_row(
                    "LM Studio", load::lm_studio_dir(), load::lm_studio_models().size()
                );
              }
          ),
      }
  };
}

// Asks the hub. Any answer counts, also one that refuses.
DoctorRow reach_row(bool offline) {
  if (offline || hub::is_offline()) {
    return {"reachable", "not asked", nullptr};
  }
  const auto began = std::chrono::steady_clock::now();
  std::string reason;
  try {
    hub::Fetcher fetcher({
        .endpoint = hub::endpoint(),
        .token = "",
        .timeout = std::chrono::duration_cast<std::chrono::seconds>(kPatience),
        .text_limit = kPatience,
        .http_proxy = hub::http_proxy(),
        .stop = {},
    });
    fetcher.get("/api/models?limit=1", "the hub", std::size_t{1} << 20);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) {
      reason = error.what();
    }
  }
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - began
  );
  return {
      "reachable",
      reason.empty() ? fmt::format("yes, in {} ms", took.count()) : fmt::format("no: {}", reason),
      {{"reached", reason.empty()}, {"milliseconds", took.count()}, {"reason", reason}}
  };
}

DoctorSection hub_section(bool offline) {
  return {
      "hub",
      {
          row("endpoint", hub::without_user(hub::endpoint())),
          tried(
              "token",
              [] {
                const bool has_token = !hub::token().empty();
                return DoctorRow{"token", has_token ? "set" : "none", has_token};
              }
          ),
          tried("reachable", [offline] { return reach_row(offline); }),
      }
  };
}

// The variables of the table and those that begin with SAKER_, in the order of names.
std::vector<std::pair<std::string, std::string>> set_variables() {
  std::vector<std::pair<std::string, std::string>> found;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view entry = *at;
    const std::size_t equals = std::min(entry.find('='), entry.size());
    const std::string name(entry.substr(0, equals));
    const auto known = environment_variables();
    if (name.starts_with("SAKER_") ||
        std::ranges::find(known, name, &EnvironmentVariable::name) != known.end()) {
      const std::string_view value = equals < entry.size() ? entry.substr(equals + 1) : "";
      found.emplace_back(name, shown_value(name, value));
    }
  }
  std::ranges::sort(found);
  return found;
}

// "threads", or "run.temperature" of a command.
std::string entry_name(const ConfigEntry& entry) {
  return entry.command.empty() ? entry.option : fmt::format("{}.{}", entry.command, entry.option);
}

DoctorRow config_row() {
  const std::filesystem::path path = config_path();
  if (path.empty()) {
    return {"file", std::string(kNone), nullptr};
  }
  Json values = Json::object();
  std::string text = quote_path(path);
  for (const ConfigEntry& entry : read_config(path)) {
    const std::string shown =
        shown_value(entry.option, fmt::format("{}", fmt::join(entry.values, ", ")));
    values[entry_name(entry)] = shown;
    text += fmt::format("\n{} = {}", entry_name(entry), shown);
  }
  return {"file", std::move(text), {{"path", path.native()}, {"values", std::move(values)}}};
}

DoctorSection settings_section() {
  Json values = Json::object();
  std::string text;
  for (const auto& [name, value] : set_variables()) {
    values[name] = value;
    text += fmt::format("{}{}={}", text.empty() ? "" : "\n", name, value);
  }
  return {
      "settings",
      {
          tried("file", config_row),
          {"environment", text.empty() ? std::string(kNone) : std::move(text), std::move(values)},
      }
  };
}

}  // namespace

std::vector<DoctorSection> check_up(bool offline) {
  const engine::BackendFacts backend = engine::backend_facts();
  return {
      program_section(backend),
      machine_section(look_at_machine(), backend),
      models_section(),
      hub_section(offline),
      settings_section(),
  };
}

std::string doctor_text(const std::vector<DoctorSection>& sections) {
  constexpr std::size_t kNameWidth = 18;
  std::string text;
  for (const DoctorSection& section : sections) {
    text += section.name + "\n";
    for (const DoctorRow& one : section.rows) {
      std::string_view rest = one.text;
      std::string_view name = one.name;
      do {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        text += fmt::format("  {:<{}}{}\n", name, kNameWidth, rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
        name = {};
      } while (!rest.empty());
    }
  }
  return text;
}

Json doctor_json(const std::vector<DoctorSection>& sections) {
  Json json = Json::object();
  for (const DoctorSection& section : sections) {
    Json rows = Json::object();
    for (const DoctorRow& one : section.rows) {
      std::string name = one.name;
      std::ranges::replace(name, ' ', '_');
      rows[name] = one.value;
    }
    json[section.name] = std::move(rows);
  }
  return json;
}

}  // namespace saker::cli
