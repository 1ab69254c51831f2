// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tensors of an inspected path, by name, from the headers of its files.

#include "saker/load/files/safetensors.h"
#include "saker/load/importers/lazy_tensor.h"
#include "saker/load/inspect/inspect.h"
#include "saker/models/tensor_roster.h"
#include "saker/nn/weights/weights.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace saker::load {

using Headers = std::map<std::string, SafetensorsEntry, std::less<>>;

// Adds the tensors of one file, which the result then lists with its size and metadata. Throws as
// read_safetensors_header does.
void add_file(Inspection& result, Headers& headers, const std::filesystem::path& path);

// As above, for NumPy's archive, which has to be read whole. Throws as read_npz does.
void add_npz(Inspection& result, Headers& headers, const std::filesystem::path& path);

// Fills in the result's totals over all tensors.
void add_totals(Inspection& result, const Headers& headers);

// Headers of lazy tensors, which are made when the model is loaded.
Headers lazy_headers(const importers::ImportedModel& model);

// Weights as people count them, see Inspection::parameters. Codes are counted by the inputs in
// `roster` if there is one, else by the width in the configuration.
std::int64_t count_parameters(
    const Headers& headers,
    const nn::QuantizationConfig& quantization,
    const std::optional<models::TensorRoster>& roster = std::nullopt
);

}  // namespace saker::load
