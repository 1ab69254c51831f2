// SPDX-License-Identifier: Apache-2.0
// `saker serve`: models behind the APIs of OpenAI, Anthropic and Ollama.
#include "saker/cli/serve/serve.h"

#include "saker/base/error.h"
#include "saker/cli/io/output.h"
#include "saker/cli/options/checks.h"
#include "saker/cli/options/model_args.h"
#include "saker/cli/serve/key_file.h"
#include "saker/cli/serve/kv_event_options.h"
#include "saker/cli/serve/model_options.h"
#include "saker/cli/serve/otlp.h"
#include "saker/server/service.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::cli {
namespace {

constexpr int kMaxSeconds = 86'400;

struct ServeArgs {
  ModelOptions models;
  server::ServiceOptions service;
  std::vector<std::string> keys;
  std::string key_file;
  std::string keys_json;
  int body_limit_mb = 32;
  std::string log_form;  // Empty: no log.
  KvEventArgs kv_events;
};

// "NAME=VALUE"; without a '=' the name is `fallback`.
std::pair<std::string, std::string> named(const std::string& text, const std::string& fallback) {
  const std::size_t equals = text.find('=');
  return equals == std::string::npos ? std::pair(fallback, text)
                                     : std::pair(text.substr(0, equals), text.substr(equals + 1));
}

std::vector<server::http::ApiKey> read_keys(const ServeArgs& args) {
  std::vector<std::string> lines = args.keys;
  if (!args.key_file.empty()) {
    std::istringstream text(read_text(args.key_file));
    for (std::string line; std::getline(text, line);) {
      if (!line.empty() && !line.starts_with('#')) {
        lines.push_back(line);
      }
    }
  }
  std::vector<server::http::ApiKey> keys;
  for (const std::string& line : lines) {
    auto [name, key] = named(line, fmt::format("key {}", keys.size() + 1));
    require(!key.empty(), ErrorCode::kInvalidArgument, "an API key is empty");
    keys.push_back({std::move(name), std::move(key)});
  }
  if (!args.keys_json.empty()) {
    std::ranges::move(
        parse_api_keys(read_text(args.keys_json), args.keys_json), std::back_inserter(keys)
    );
  }
  return keys;
}

// "a, b and 3 more".
std::string names_of(const server::ModelCatalog& catalog) {
  constexpr std::size_t kShown = 3;
  const auto cards = catalog.cards();
  std::string names = cards.front().name();
  for (std::size_t i = 1; i < std::min(cards.size(), kShown); ++i) {
    names += ", " + cards[i].name();
  }
  return cards.size() > kShown ? fmt::format("{} and {} more", names, cards.size() - kShown)
                               : names;
}

int run_serve(const ServeArgs& args) {
  server::ServiceOptions options = args.service;
  options.access.keys = read_keys(args);
  options.http.limits.body_bytes = static_cast<std::size_t>(args.body_limit_mb) << 20;
  if (!args.log_form.empty()) {
    options.log.form = args.log_form == "json" ? server::LogForm::kJson : server::LogForm::kText;
    options.log.write = [](std::string_view line) { print_error(fmt::format("{}\n", line)); };
  }
  options.tracing = tracing_of_environment();
  ModelOptions models = args.models;
  models.kv_events = make_publisher(args.kv_events);
  const auto catalog = make_catalog(models);
  options.models = route_options(models, catalog);
  server::Service service(catalog, options);
  print_error(fmt::format("{} is at {}\n", names_of(*catalog), service.address()));
  service.run();
  return 0;
}

void add_access(CLI::App& command, ServeArgs& args) {
  command
      .add_option(
          "--api-key", args.keys, "A key that clients have to send, or NAME=KEY; may be repeated"
      )
      ->type_name("KEY")
      ->group("Access");
  command
      .add_option("--api-key-file", args.key_file, "A file with a key, or NAME=KEY, in each line")
      ->type_name("FILE")
      ->group("Access");
  command
      .add_option(
          "--api-keys", args.keys_json, "A JSON file of keys with names, classes and limits"
      )
      ->type_name("FILE")
      ->group("Access");
  command
      .add_option(
          "--tls-cert",
          args.service.http.certificate,
          "A certificate chain in PEM: connections speak TLS"
      )
      ->type_name("FILE")
      ->group("Access");
  command
      .add_option("--tls-key", args.service.http.certificate_key, "The certificate's key in PEM")
      ->type_name("FILE")
      ->group("Access");
  command
      .add_option(
          "--allow-host", args.service.access.hosts, "A name of this server; may be repeated"
      )
      ->type_name("NAME")
      ->group("Access");
  command
      .add_option(
          "--allow-origin",
          args.service.access.origins,
          "An origin whose pages may send requests; *: any; may be repeated"
      )
      ->type_name("ORIGIN")
      ->group("Access");
}

void add_log(CLI::App& command, ServeArgs& args) {
  command
      .add_flag(
          "--log-requests{text}",
          args.log_form,
          "Log a line per request on standard error; --log-requests=json: as JSON"
      )
      ->check(one_of({"text", "json"}))
      ->group("Server");
  command
      .add_flag(
          "--log-prompts", args.service.log.has_bodies, "Such lines have the requests' bodies, too"
      )
      ->needs("--log-requests")
      ->group("Server");
}

void add_server(CLI::App& command, ServeArgs& args) {
  command
      .add_option(
          "--host",
          args.service.http.host,
          "Address to listen on, unix:PATH, or systemd [127.0.0.1]"
      )
      ->type_name("ADDRESS")
      ->group("Server");
  command.add_option("--port", args.service.http.port, "Port to listen on; 0: any free one [8080]")
      ->check(between(0, 65'535))
      ->type_name("INT")
      ->group("Server");
  command.add_option("--body-limit", args.body_limit_mb, "Largest body of a request, in MiB [32]")
      ->check(between(1, 1024))
      ->type_name("INT")
      ->group("Server");
  command
      .add_option(
          "--drain-delay",
          args.service.drain_delay_seconds,
          "Seconds after SIGTERM in which all is served while /health says 503 [0]"
      )
      ->check(between(0, kMaxSeconds))
      ->type_name("INT")
      ->group("Server");
  command
      .add_option(
          "--drain-timeout",
          args.service.drain_seconds,
          "Seconds that running answers then have [30]"
      )
      ->check(between(0, kMaxSeconds))
      ->type_name("INT")
      ->group("Server");
  command
      .add_option(
          "--stall-timeout",
          args.service.stall_seconds,
          "Seconds of one pass after which /health says that the model hangs; 0: never [120]"
      )
      ->check(between(0, kMaxSeconds))
      ->type_name("INT")
      ->group("Server");
  add_log(command, args);
}

}  // namespace

void add_serve(CLI::App& app, Action& action) {
  auto args = std::make_shared<ServeArgs>();
  CLI::App& command =
      *app.add_subcommand("serve", "Serve models by the APIs of OpenAI, Anthropic and Ollama");
  ModelArgs& model = args->models.common;
  add_model_options(command, args->models);
  add_engine_args(command, model);
  add_fast_prefill(command, model);
  add_draft_args(command, model);
  add_prefix_cache_args(command, model);
  command.add_option("--batch", model.engine.batch, "Requests that run in one batch [8]")
      ->check(between(1, 1024))
      ->type_name("INT")
      ->group("Engine");
  add_server(command, *args);
  add_kv_event_options(command, args->kv_events);
  add_access(command, *args);
  command.callback([args, &action] { action = [args] { return run_serve(*args); }; });
}

}  // namespace saker::cli
