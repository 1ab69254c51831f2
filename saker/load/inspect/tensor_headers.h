// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tensors of what is inspected, by name, from the headers of its files.

#include "saker/load/importers/lazy_tensor.h"
#include "saker/load/inspect/inspect.h"
#include "saker/load/safetensors.h"
#include "saker/models/tensor_roster.h"
#include "saker/nn/weights.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace saker::load {

using Headers = std::map<std::string, SafetensorsEntry, std::less<>>;

// Those of one file, which the result then lists with its size and metadata. Throws as
// read_safetensors_header.
void add_file(Inspection& result, Headers& headers, const std::filesystem::path& path);

// The same of NumPy's archive, which has to be read whole. Throws as read_npz.
void add_npz(Inspection& result, Headers& headers, const std::filesystem::path& path);

// Fills in what the result says of all of them.
void add_totals(Inspection& result, const Headers& headers);

// Those that are made when the model is loaded.
Headers lazy_headers(const importers::ImportedModel& model);

// Weights as a person counts them, see Inspection::parameters. Of codes by the inputs that `roster`
// knows, where there is one, else by the width that the configuration says.
std::int64_t count_parameters(
    const Headers& headers,
    const nn::QuantizationConfig& quantization,
    const std::optional<models::TensorRoster>& roster = std::nullopt
);

}  // namespace saker::load
