// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/serve/kv_event_options.h"

#include "saker/cli/io/output.h"
#include "saker/cli/options/checks.h"
#include "saker/cli/serve/zmq_publisher.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <utility>

namespace saker::cli {
namespace {

// llm-d's router reads the replica and the model from it.
std::string default_topic() {
  std::array<char, 256> name{};
  const bool is_known = gethostname(name.data(), name.size() - 1) == 0;
  return fmt::format("kv@{}@{{model}}", is_known ? name.data() : "localhost");
}

}  // namespace

void add_kv_event_options(CLI::App& command, KvEventArgs& args) {
  CLI::Option* const endpoint =
      command
          .add_option(
              "--kv-events",
              args.endpoint,
              "Publish events of the prefix cache by ZeroMQ, in vLLM's format, at tcp://*:5557"
          )
          ->type_name("ENDPOINT")
          ->group("Server");
  command
      .add_option(
          "--kv-events-topic",
          args.topic,
          "Their topic; {model}: the model's name [kv@HOST@{model}]"
      )
      ->needs(endpoint)
      ->type_name("TOPIC")
      ->group("Server");
  command
      .add_option(
          "--kv-events-format",
          args.form,
          "Each event as a map, or as an array for old routers [map]"
      )
      ->check(one_of({"map", "array"}))
      ->needs(endpoint)
      ->type_name("map|array")
      ->group("Server");
}

std::shared_ptr<server::kv_events::Publisher> make_publisher(const KvEventArgs& args) {
  if (args.endpoint.empty()) {
    return nullptr;
  }
  const auto socket = std::make_shared<ZmqPublisher>(args.endpoint);
  server::kv_events::PublisherOptions options;
  options.send = [socket](const std::string& topic, std::uint64_t number, const std::string& body) {
    socket->send(topic, number, body);
  };
  options.topic = args.topic.empty() ? default_topic() : args.topic;
  options.form = args.form == "array" ? server::kv_events::EventForm::kArray
                                      : server::kv_events::EventForm::kMap;
  print_error(fmt::format("events of the prefix cache are at {}\n", socket->endpoint()));
  return std::make_shared<server::kv_events::Publisher>(std::move(options));
}

}  // namespace saker::cli
