// SPDX-License-Identifier: Apache-2.0
#pragma once

// A model's configuration and texts (tokenizer, chat template), whatever holds them.

#include "saker/load/importers/lazy_tensor.h"
#include "saker/text/model_texts.h"

#include <filesystem>

namespace saker::load {

// Of a folder its files; of a GGUF file what follows from its metadata, in memory. Reads no
// weights. Throws as gguf::open_gguf does, and as open_model_dir where there is neither.
text::ModelTexts open_texts(const std::filesystem::path& model);

// Those of a GGUF file that was read.
text::ModelTexts texts_of(const importers::ImportedModel& read, const std::filesystem::path& model);

}  // namespace saker::load
