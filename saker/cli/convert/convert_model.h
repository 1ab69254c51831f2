// SPDX-License-Identifier: Apache-2.0
#pragma once

// The part of `saker convert` that writes a model.

#include "saker/load/convert/convert_model.h"

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace saker::cli {

struct ConvertModelArgs {
  int bits = 0;  // 0: the mode's default, also below.
  int group_size = 0;
  std::string mode;  // Empty: not given.
  std::string recipe;
  std::vector<std::string> rules;
  std::string dtype;
  bool quantize = false;  // Set even without a format.
  bool dequantize = false;
  std::string modelfile;  // Names the model and maybe its draft; empty: none.
  std::string draft;      // Empty: none.
  int draft_bits = 0;
  int draft_group_size = 0;
  std::string draft_mode;
};

// The conversion that the options ask for, without a draft.
load::ConvertOptions convert_options(const ConvertModelArgs& args);

// Add the options for the format of the weights, and of a draft's; the first returns them.
std::vector<CLI::Option*> add_format_options(CLI::App& command, ConvertModelArgs& args);
void add_draft_format_options(CLI::App& command, ConvertModelArgs& args);

// Adds the format options, the draft and the Modelfile; returns them, so that others can exclude
// them.
std::vector<CLI::Option*> add_weight_options(CLI::App& command, ConvertModelArgs& args);

// Prints the result and returns the exit code. `source` is empty with a Modelfile.
int run_convert_model(
    const ConvertModelArgs& args, const std::string& source, const std::string& target, bool json
);

}  // namespace saker::cli
