// SPDX-License-Identifier: Apache-2.0
#pragma once

// A model's configuration and texts (tokenizer, chat template), from a folder or a GGUF file.

#include "saker/load/importers/lazy_tensor.h"
#include "saker/text/model_texts.h"

#include <filesystem>

namespace saker::load {

// For a folder, its files; for a GGUF file, texts in memory that are derived from its metadata.
// Reads no weights. Throws as gguf::open_gguf does, and as open_model_dir if `model` is neither.
text::ModelTexts open_texts(const std::filesystem::path& model);

// As open_texts. Throws kNotFound for a folder without config.json: it is no model at all.
text::ModelTexts open_model_texts(const std::filesystem::path& model);

// The texts of a GGUF file that is already read.
text::ModelTexts texts_of(const importers::ImportedModel& read, const std::filesystem::path& model);

}  // namespace saker::load
