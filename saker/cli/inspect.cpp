// SPDX-License-Identifier: Apache-2.0
// `saker inspect`: the content of a model, adapter or tensor file, and whether we can run it.
#include "saker/load/inspect/inspect.h"

#include "saker/adapters/adapter_source.h"
#include "saker/base/error.h"
#include "saker/cli/hub/asking.h"
#include "saker/cli/hub/inspect_remote.h"
#include "saker/cli/io/output.h"
#include "saker/cli/io/result_json.h"
#include "saker/cli/options/checks.h"
#include "saker/cli/options/command.h"
#include "saker/hub/missing_model.h"
#include "saker/hub/model_name.h"
#include "saker/load/files/model_dir.h"
#include "saker/load/files/named_models.h"
#include "saker/load/inspect/inspection_report.h"

#include <CLI/CLI.hpp>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace saker::cli {
namespace {

struct InspectArgs {
  std::string path;
  std::optional<int> kv_bits;
  bool json = false;
};

// Checks that we can apply the adapter to its base.
void check_adapter(const std::filesystem::path& dir, load::Inspection& inspection) {
  try {
    adapters::read_adapter(dir);
  } catch (const Error& error) {
    inspection.runnable = false;
    inspection.reason = error.what();
  }
}

// A model that is not here and may be on the hub. Names without an owner are mostly missing
// folders.
std::optional<hub::ModelName> remote_model(const std::string& path) {
  auto name = load::find_named_model(path) ? std::nullopt : hub::missing_model(path);
  return name && name->repo.find('/') != std::string::npos ? std::move(name) : std::nullopt;
}

int run_inspect(const InspectArgs& args) {
  if (const auto name = remote_model(args.path)) {
    const RemoteInspection remote =
        ask_for_missing(*name, [&] { return inspect_remote(*name, args.kv_bits); });
    print(args.json ? remote_json(remote) : remote_text(remote));
    return 0;
  }
  // A file is inspected as it is. Anything else may also be a repo id or, if absent, the demo
  // model.
  std::error_code ignored;
  const bool is_file = std::filesystem::is_regular_file(args.path, ignored);
  const auto path = is_file ? std::filesystem::path(args.path) : load::resolve_model(args.path);
  load::Inspection inspection = load::inspect(path, args.kv_bits);
  if (inspection.adapter && inspection.runnable) {
    check_adapter(path, inspection);
  }
  print(
      args.json ? dump_line(load::inspection_json(inspection)) : load::inspection_text(inspection)
  );
  return 0;
}

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  auto args = std::make_shared<InspectArgs>();
  CLI::App& command = *app.add_subcommand(
      "inspect", "Show what a model, adapter or tensor file holds and if it can run"
  );
  command
      .add_option(
          "PATH,-m,--model",
          args->path,
          "A folder, a .safetensors or GGUF file, or a repo id [the bundled demo model]"
      )
      ->type_name("MODEL");
  command
      .add_option(
          "--kv-bits",
          args->kv_bits,
          "Also the cache of each layer, in so many bits an element: 4, 8, 16 or 32"
      )
      ->check(one_of({"32", "16", "8", "4"}))
      ->type_name("4|8|16|32");
  command.add_flag("--json", args->json, "Print one JSON object");
  command.callback([args, &action] { action = [args] { return run_inspect(*args); }; });
}

}  // namespace saker::cli
