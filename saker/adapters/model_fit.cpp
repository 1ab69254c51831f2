// SPDX-License-Identifier: Apache-2.0
#include "saker/adapters/model_fit.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/base/utf8.h"
#include "saker/load/gguf/gguf_family.h"
#include "saker/load/sources/open_texts.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace saker::adapters {
namespace {

Tensor with_rows_in_order(const Tensor& matrix, std::int64_t head_dim) {
  const auto rows = static_cast<std::size_t>(matrix.shape.front());
  const auto head = static_cast<std::size_t>(head_dim);
  const std::size_t row_bytes = matrix.nbytes() / rows;
  const auto memory = std::make_shared<std::vector<std::byte>>(matrix.nbytes());
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t in_head = row % head;
    const std::size_t from = row - in_head + in_head % (head / 2) * 2 + in_head / (head / 2);
    std::memcpy(memory->data() + row * row_bytes, matrix.data.get() + from * row_bytes, row_bytes);
  }
  if (matrix.release) {
    matrix.release();
  }
  Tensor result;
  result.dtype = matrix.dtype;
  result.shape = matrix.shape;
  result.data = std::shared_ptr<const std::byte>(memory, memory->data());
  return result;
}

void check_base_type(const AdapterSource& source, std::string_view model_type) {
  require(
      source.base_type.empty() || load::gguf::are_relatives(source.base_type, model_type),
      ErrorCode::kInvalidArgument,
      "the adapter is for models of type {}, the model's is {}",
      source.base_type,
      quote(model_type)
  );
}

}  // namespace

void order_rows(AdapterSource& source, std::int64_t head_dim) {
  for (auto& [name, module] : source.modules) {
    if (!module.low_rank || !module.low_rank->rotated_pairs) {
      continue;
    }
    const std::int64_t rows = module.low_rank->up.shape.front();
    require(
        head_dim > 0 && head_dim % 2 == 0 && rows % head_dim == 0,
        ErrorCode::kInvalidArgument,
        "[{}] the adapter has {} rows, the model needs whole heads of {}",
        module.name,
        rows,
        head_dim
    );
    module.low_rank->up = with_rows_in_order(module.low_rank->up, head_dim);
    module.low_rank->rotated_pairs = false;
  }
}

void fit_to_model(AdapterSource& source, const models::Model& model) {
  const models::ModelInfo& info = model.info();
  check_base_type(source, info.model_type);
  // All layers of Llama's models have heads of one width.
  order_rows(source, std::max(info.last_full.head_dim, info.last_sliding.head_dim));
}

void fit_to_model(AdapterSource& source, const std::filesystem::path& model) {
  const Json config = load::open_texts(model).read_json("config.json");
  const Json* nested = find_member(config, "text_config");
  const Json& text = nested != nullptr ? *nested : config;
  check_base_type(source, json_string(config, "model_type", ""));
  const std::int64_t heads = std::max(json_int(text, "num_attention_heads", 1), std::int64_t{1});
  order_rows(source, json_int(text, "head_dim", json_int(text, "hidden_size", 0) / heads));
}

}  // namespace saker::adapters
