// SPDX-License-Identifier: Apache-2.0
// `saker launch`: a coding agent on a local model.
#include "saker/cli/launch/launch.h"

#include "saker/base/error.h"
#include "saker/base/files/atomic_file.h"
#include "saker/base/utf8.h"
#include "saker/cli/hub/fetch_model.h"
#include "saker/cli/io/interrupt.h"
#include "saker/cli/io/output.h"
#include "saker/cli/io/temporary_folder.h"
#include "saker/cli/launch/agents.h"
#include "saker/cli/launch/child.h"
#include "saker/cli/launch/find_server.h"
#include "saker/cli/options/checks.h"
#include "saker/cli/options/command_tree.h"
#include "saker/load/files/model_dir.h"
#include "saker/load/files/program_path.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace saker::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kPort = 8080;
constexpr std::string_view kDemoName = "saker-demo";

struct LaunchArgs {
  std::string agent;
  std::string model;
  std::vector<std::string> rest;
  std::string server;
  std::string key;
  bool pulls = false;
};

// The programs of this run; signals end them.
struct Run {
  TemporaryFolder folder;
  std::optional<Child> server;
  std::optional<Child> agent;
  std::atomic<const Child*> running_server = nullptr;
  std::atomic<const Child*> running_agent = nullptr;

  // On the thread of signals.
  void end() const {
    for (const Child* child : {running_agent.load(), running_server.load()}) {
      if (child != nullptr) {
        child->signal(SIGTERM);
      }
    }
    folder.remove();
  }
};

void refuse_demo(std::string_view agent) {
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format(
          "the demo model is too small for {}, which needs a model that calls tools: saker launch "
          "{} MODEL",
          agent,
          agent
      )
  );
}

bool is_demo(const std::string& model) {
  std::error_code ignored;
  return fs::equivalent(load::resolve_model(model), load::demo_model_dir(), ignored);
}

std::string last_line(const fs::path& log) {
  std::string text = fs::exists(log) ? read_text(log.string()) : "";
  while (text.ends_with('\n')) {
    text.pop_back();
  }
  return text.substr(text.rfind('\n') + 1);
}

// Starts a server and waits until it answers.
std::string start_server(const LaunchArgs& args, Run& run) {
  const fs::path log = run.folder.path() / "server.log";
  print_error(fmt::format("starts a server with {}\n", quote(args.model)));
  run.server.emplace(
      load::program_path(),
      std::vector<std::string>{"serve", args.model, "--port", "0", "--any-model"},
      ChildOptions{.log = log, .kind = ChildKind::kBackground}
  );
  run.running_server = &*run.server;
  constexpr std::string_view kMark = " is at http";
  while (true) {
    const bool has_ended = run.server->ended().has_value();
    const std::string line = last_line(log);
    if (const std::size_t mark = line.find(kMark); mark != std::string::npos) {
      return line.substr(line.rfind(' ') + 1);
    }
    require(!has_ended, ErrorCode::kInternal, "the server did not start: {}", line);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

bool serves(const std::vector<ServedName>& names, const std::string& model) {
  const std::string last = fs::path(model).lexically_normal().filename().string();
  return model.empty() || std::ranges::any_of(names, [&](const ServedName& served) {
           return served.name == model || served.name == last;
         });
}

LaunchServer use(
    const LaunchArgs& args, const std::string& address, const std::vector<ServedName>& names
) {
  require(!names.empty(), ErrorCode::kNotFound, "the server at {} has no models", address);
  const std::string last = fs::path(args.model).lexically_normal().filename().string();
  auto found = std::ranges::find_if(names, [&](const ServedName& served) {
    return served.name == args.model || served.name == last;
  });
  found = found == names.end() ? names.begin() : found;
  if (found->name == kDemoName) {
    refuse_demo(args.agent);
  }
  return {address, found->name, args.key.empty() ? "none" : args.key, found->context};
}

// A server that runs already, else a new one.
LaunchServer find_server(const LaunchArgs& args, Run& run) {
  const std::string address =
      args.server.empty() ? fmt::format("http://127.0.0.1:{}", kPort) : args.server;
  const auto names = served_names(address, args.key);
  if (names && serves(*names, args.model)) {
    print_error(fmt::format("uses the server at {}\n", address));
    return use(args, address, *names);
  }
  require(
      args.server.empty() || names,
      ErrorCode::kNotFound,
      "no server of models answers at {}",
      quote(args.server)
  );
  require(
      args.server.empty(),
      ErrorCode::kNotFound,
      "the server at {} does not have the model {}",
      quote(args.server),
      quote(args.model)
  );
  if (!args.model.empty()) {
    fetch_missing_model(args.model, args.pulls);
  }
  if (args.model.empty() || is_demo(args.model)) {
    refuse_demo(args.agent);
  }
  const std::string own = start_server(args, run);
  const auto own_names = served_names(own, args.key);
  require(own_names.has_value(), ErrorCode::kInternal, "the server at {} does not answer", own);
  return use(args, own, *own_names);
}

// The text without the key.
std::string hidden(std::string text, const std::string& key) {
  for (std::size_t at = 0; !key.empty() && (at = text.find(key, at)) != std::string::npos;
       at += 3) {
    text.replace(at, key.size(), "***");
  }
  return text;
}

// Says what holds for this run.
void tell(const AgentSettings& settings, const fs::path& program, const std::string& key) {
  for (const auto& [name, value] : settings.environment) {
    print_error(
        value.empty() ? fmt::format("unsets {}\n", name)
                      : fmt::format("sets {}={}\n", name, hidden(value, key))
    );
  }
  for (const auto& [path, _] : settings.files) {
    print_error(fmt::format("writes {}\n", path.string()));
  }
  print_error(fmt::format("runs {} {}\n", program.string(), fmt::join(settings.args, " ")));
}

void write(const std::pair<fs::path, std::string>& file) {
  AtomicFile out(file.first, FileReaders::kOwner);
  out.write(file.second);
  out.commit();
}

int run_launch(const LaunchArgs& args) {
  const Agent& agent = find_agent(args.agent);
  const fs::path program = find_program(std::string(agent.program));
  require(
      !program.empty(),
      ErrorCode::kNotFound,
      "{} is not installed: {}",
      agent.program,
      agent.install
  );
  Run run;
  InterruptWatcher watcher(WatchedSignals::kAllEnds);
  watcher.before_end([&run] { run.end(); });
  watcher.end_program();
  const LaunchServer server = find_server(args, run);
  const fs::path folder = run.folder.path() / "agent";
  fs::create_directory(folder);
  AgentSettings settings = agent_settings(agent, server, folder);
  std::ranges::for_each(settings.files, write);
  tell(settings, program, args.key);
  settings.args.insert(settings.args.end(), args.rest.begin(), args.rest.end());
  watcher.set_handler({});  // Ctrl-C is the agent's.
  run.agent.emplace(program, settings.args, ChildOptions{.environment = settings.environment});
  run.running_agent = &*run.agent;
  const int code = run.agent->wait();
  run.running_agent = nullptr;
  if (run.server && run.server->ended()) {
    spdlog::warn(
        "the server ended before the agent: {}", last_line(run.folder.path() / "server.log")
    );
  }
  run.running_server = nullptr;
  return code;
}

}  // namespace

void add_launch(CLI::App& app, Action& action) {
  auto args = std::make_shared<LaunchArgs>();
  CLI::App& command =
      *app.add_subcommand("launch", "Run a coding agent on a model, with settings for this run");
  command
      .add_option(
          "AGENT", args->agent, "The agent: " + fmt::format("{}", fmt::join(agent_names(), ", "))
      )
      ->required()
      ->check(one_of(agent_names()));
  command
      .add_option(
          "MODEL,-m,--model",
          args->model,
          "A folder, a GGUF file, a Hugging Face repo id, or a name of `saker list` [that of the "
          "running server]"
      )
      ->type_name("MODEL");
  command.add_option(std::string(kRestOption), args->rest, "What follows --, for the agent")
      ->allow_extra_args(false)
      ->group("");
  command
      .add_option(
          "--server",
          args->server,
          "Address of a running server [http://127.0.0.1:8080 if it has the model]"
      )
      ->type_name("ADDRESS")
      ->group("Server");
  command.add_option("--api-key", args->key, "The key of that server")
      ->type_name("KEY")
      ->group("Server");
  command.callback([args, &action, &command] {
    args->pulls = command.count("--pull") > 0;
    action = [args] { return run_launch(*args); };
  });
}

}  // namespace saker::cli
