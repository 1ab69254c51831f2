// SPDX-License-Identifier: Apache-2.0
#pragma once

// Members of a request that several dialects have by the same names: sampling, stop texts,
// constraints, and where a request runs. Names are those of OpenAI, vLLM and llama-server.

#include "saker/engine/request.h"
#include "saker/server/turns/fields.h"
#include "saker/server/turns/served_model.h"

namespace saker::server {

// Sets sampling. Members that are absent stay as generation_config.json recommends; without a seed
// one is drawn.
void read_sampling(Fields& fields, const ServedModel& model, engine::Request& request);

// Stop texts under this name; an empty one is a 400.
void read_stop(Fields& fields, std::string_view name, engine::Request& request);

// structured_outputs and guided_* of vLLM, json_schema of llama-server.
void read_constraint(Fields& fields, engine::Request& request);

// Constrains the answer to a JSON schema, named by `name`. Throws a 400 beside another constraint.
void constrain_to_schema(const Json& schema, const std::string& name, engine::Request& request);

// priority, cache_salt, user.
void read_placement(Fields& fields, engine::Request& request);

}  // namespace saker::server
