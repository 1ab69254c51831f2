// SPDX-License-Identifier: Apache-2.0
// `saker doctor`: this machine, its models and settings, to paste into an issue.
#include "saker/cli/doctor/checkup.h"
#include "saker/cli/io/output.h"
#include "saker/cli/io/result_json.h"
#include "saker/cli/options/command.h"

#include <CLI/CLI.hpp>

#include <memory>
#include <vector>

namespace saker::cli {
namespace {

struct DoctorArgs {
  bool offline = false;
  bool json = false;
};

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  auto args = std::make_shared<DoctorArgs>();
  CLI::App& command = *app.add_subcommand(
      "doctor", "Show this machine, its models and settings, to paste into an issue"
  );
  command.add_flag("--offline", args->offline, "Do not ask the hub whether it answers");
  command.add_flag("--json", args->json, "Print one JSON object");
  command.callback([args, &action] {
    action = [args] {
      const std::vector<DoctorSection> sections = check_up(args->offline);
      print(args->json ? dump_line(doctor_json(sections)) : doctor_text(sections));
      return 0;
    };
  });
}

}  // namespace saker::cli
