// SPDX-License-Identifier: Apache-2.0
#pragma once

// The part of `saker convert` that writes a model.

#include "saker/cli/io/writing_progress.h"
#include "saker/load/convert/convert_model.h"
#include "saker/load/export/export_gguf.h"

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
  std::string type;     // The recipe of a GGUF file to write; empty: not given.
  std::string imatrix;  // A file with an importance matrix; empty: none.
};

// True for the name of a GGUF file.
bool names_gguf(const std::string& target);

// The conversion that the options ask for, without a draft.
load::ConvertOptions convert_options(const ConvertModelArgs& args);

// Add the options for the format of the weights, and of a draft's; the first returns them.
std::vector<CLI::Option*> add_format_options(CLI::App& command, ConvertModelArgs& args);
void add_draft_format_options(CLI::App& command, ConvertModelArgs& args);

// Adds the format options, the draft and the Modelfile; returns them, so that others can exclude
// them.
std::vector<CLI::Option*> add_weight_options(CLI::App& command, ConvertModelArgs& args);

// Adds the options of GGUF files to write; returns them.
std::vector<CLI::Option*> add_gguf_options(CLI::App& command, ConvertModelArgs& args);

// The options of load::gguf::export_gguf() that `args` asks for. `progress` outlives them.
load::gguf::GgufOptions gguf_options(const ConvertModelArgs& args, WritingProgress& progress);

// Prints a conversion's result.
void print_conversion(const load::ConvertReport& report, const std::string& target, bool as_json);

// Prints the result and returns the exit code. `source` is empty with a Modelfile. A target that
// ends in ".gguf" is a file, any other one a folder.
int run_convert_model(
    const ConvertModelArgs& args, const std::string& source, const std::string& target, bool json
);

}  // namespace saker::cli
