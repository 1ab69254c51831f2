// SPDX-License-Identifier: Apache-2.0
// A server with a scripted model, for tests of clients: fake_server SCRIPT.json [PORT] [KEY]
// [OPTIONS]. OPTIONS is an object of JSON: see `read_options`. Writes its address as the first line of
// standard output. fake_server --certificate CERT.pem KEY.pem makes a certificate for it.
#include "saker/base/json/json.h"
#include "saker/engine/logging.h"
#include "saker/server/service.h"

#include "tests/support/certificates.h"
#include "tests/support/fake_engine.h"

#include <cstdlib>
#include <exception>
#include <iostream>
#include <string_view>

namespace {

namespace server = saker::server;

void read_options(const saker::Json& given, server::ServiceOptions& options) {
  options.http.host = given.value("host", options.http.host);
  options.http.certificate = given.value("tls_cert", "");
  options.http.certificate_key = given.value("tls_key", "");
  options.drain_delay_seconds = given.value("drain_delay", options.drain_delay_seconds);
  options.drain_seconds = given.value("drain", options.drain_seconds);
  options.stall_seconds = given.value("stall", options.stall_seconds);
  options.log.has_bodies = given.value("log_bodies", false);
  if (given.contains("log")) {
    options.log.form = given["log"] == "json" ? server::LogForm::kJson : server::LogForm::kText;
    options.log.write = [](std::string_view line) { std::cerr << line << std::endl; };
  }
  for (const saker::Json& key : given.value("keys", saker::Json::array())) {
    options.access.keys.push_back(
        {.name = key.at("name"),
         .key = key.at("key"),
         .priority = key.value("priority", 0),
         .requests_per_minute = key.value("requests", 0),
         .tokens_per_minute = key.value("tokens", 0)}
    );
  }
}

}  // namespace

int main(int argc, char** argv) {
  saker::log_to_stderr();
  try {
    if (argc > 3 && std::string_view(argv[1]) == "--certificate") {
      saker::write_certificate(argv[2], argv[3]);
      return 0;
    }
    saker::FakeEngine model(saker::read_json_file(argv[1]));
    saker::server::ServiceOptions options;
    options.http.port = argc > 2 ? std::atoi(argv[2]) : 0;
    if (argc > 3 && *argv[3] != 0) {
      options.access.keys.push_back({"test", argv[3]});
    }
    if (argc > 4) {
      read_options(saker::parse_json(argv[4], "OPTIONS"), options);
    }
    options.http.limits.write_time = std::chrono::milliseconds(1500);
    options.http.limits.head_time = std::chrono::milliseconds(1000);
    options.http.limits.ping_time = std::chrono::milliseconds(300);
    saker::server::Service service(model, {.names = {"fake"}}, options);
    std::cout << service.address() << std::endl;
    service.run();
    std::cout << "cancelled " << model.cancelled() << std::endl;
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
