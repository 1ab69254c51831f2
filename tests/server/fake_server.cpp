// SPDX-License-Identifier: Apache-2.0
// A server with a scripted model, for tests of clients: fake_server SCRIPT.json [PORT] [KEY].
// Writes its address as the first line of standard output.
#include "saker/base/json/json.h"
#include "saker/engine/logging.h"
#include "saker/server/service.h"

#include "tests/support/fake_engine.h"

#include <cstdlib>
#include <exception>
#include <iostream>

int main(int argc, char** argv) {
  saker::log_to_stderr();
  try {
    saker::FakeEngine model(saker::read_json_file(argv[1]));
    saker::server::ServiceOptions options;
    options.http.port = argc > 2 ? std::atoi(argv[2]) : 0;
    if (argc > 3) {
      options.access.keys.push_back({"test", argv[3]});
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
