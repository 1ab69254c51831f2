// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/embed.h"

#include "saker/base/error.h"
#include "saker/engine/embedding.h"

#include "python/bindings/text.h"
#include "python/bindings/token_ids.h"
#include <fmt/ranges.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace saker::python {
namespace {

constexpr char kEmbedSignature[] =
    "def embed(self, inputs: list[str | collections.abc.Iterable[int]], view: str, pooling: str | "
    "None, normalize: bool | None, dimensions: int, prompt_name: str, prompt: str | None, "
    "truncate: bool) -> numpy.typing.NDArray[numpy.float32]";
constexpr char kRerankSignature[] =
    "def rerank(self, query: str, documents: list[str], view: str, instruction: str, truncate: "
    "bool) -> numpy.typing.NDArray[numpy.float64]";

template <typename T, std::size_t Dimensions>
nb::object as_array(std::vector<T> values, std::initializer_list<std::size_t> shape) {
  using Array = nb::ndarray<nb::numpy, T, nb::ndim<Dimensions>, nb::c_contig>;
  auto owned = std::make_unique<std::vector<T>>(std::move(values));
  std::vector<T>* const data = owned.get();
  const nb::capsule owner(owned.release(), [](void* at) noexcept {
    delete static_cast<std::vector<T>*>(at);
  });
  return nb::cast(Array(data->data(), shape, owner));
}

std::optional<models::Pooling> pooling_of(const std::optional<std::string>& name) {
  const auto found = name ? models::find_pooling(*name) : std::nullopt;
  require(
      !name || found,
      ErrorCode::kInvalidArgument,
      "pooling: got {:?}, expected one of {}",
      name.value_or(""),
      fmt::join(models::pooling_names(), ", ")
  );
  return found;
}

engine::EmbedInput input_of(const nb::handle& input) {
  if (nb::isinstance<nb::str>(input)) {
    return utf8_of(nb::borrow<nb::str>(input), "text");
  }
  return token_ids(nb::borrow<nb::iterable>(input));
}

nb::object embed(
    const Model& model,
    const nb::list& inputs,
    const std::string& view,
    const std::optional<std::string>& pooling,
    std::optional<bool> normalize,
    int dimensions,
    const std::string& prompt_name,
    const std::optional<nb::str>& prompt,
    bool truncate
) {
  engine::EmbedRequest request{
      .inputs = {},
      .pooling = pooling_of(pooling),
      .normalize = normalize,
      .dimensions = dimensions,
      .prompt_name = prompt_name,
      .prompt = prompt ? std::optional(utf8_of(*prompt, "prompt")) : std::nullopt,
      .truncate = truncate,
      .view = model.view(view),
  };
  for (const nb::handle input : inputs) {
    request.inputs.push_back(input_of(input));
  }
  std::vector<float> values;
  std::size_t size = 0;
  {
    const nb::gil_scoped_release release;
    for (const std::vector<float>& vector : model.engine()->embed(request).embeddings) {
      size = vector.size();
      values.insert(values.end(), vector.begin(), vector.end());
    }
  }
  const std::size_t count = inputs.size();
  return as_array<float, 2>(std::move(values), {count, size});
}

nb::object rerank(
    const Model& model,
    const nb::str& query,
    const std::vector<nb::str>& documents,
    const std::string& view,
    const nb::str& instruction,
    bool truncate
) {
  const engine::RerankRequest request{
      .query = utf8_of(query, "query"),
      .documents = utf8_of(documents, "document"),
      .instruction = utf8_of(instruction, "instruction"),
      .truncate = truncate,
      .view = model.view(view),
  };
  std::vector<double> scores;
  {
    const nb::gil_scoped_release release;
    scores = model.engine()->rerank(request).scores;
  }
  const std::size_t count = scores.size();
  return as_array<double, 1>(std::move(scores), {count});
}

}  // namespace

void bind_embed(nb::class_<Model>& model) {
  model
      .def(
          "embed",
          embed,
          nb::arg("inputs"),
          nb::arg("view"),
          nb::arg("pooling").none(),
          nb::arg("normalize").none(),
          nb::arg("dimensions"),
          nb::arg("prompt_name"),
          nb::arg("prompt").none(),
          nb::arg("truncate"),
          nb::sig(kEmbedSignature)
      )
      .def(
          "rerank",
          rerank,
          nb::arg("query"),
          nb::arg("documents"),
          nb::arg("view"),
          nb::arg("instruction"),
          nb::arg("truncate"),
          nb::sig(kRerankSignature)
      );
}

}  // namespace saker::python
