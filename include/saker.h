// SPDX-License-Identifier: Apache-2.0
#pragma once

// The C interface of Saker, for C and for every language that can call C: docs/c-api.md.
//
// Handles are opaque. Options, requests and results grow with Saker, so they are JSON text, with the
// names that the command line and its records have (docs/cli.md). Tokens and vectors are arrays.
// Functions and constants of a version stay as they are in all later ones.
//
// Failures. A function that can fail returns a SakerStatus. Its last parameter takes one line for
// people, which the caller frees, and null on success; pass null to go without. Results are null on
// failure. No exception leaves the library, and no function ends the process.
//
// Texts. `const char*` without a size is UTF-8 with a NUL at its end. Input is borrowed for the
// call. Results belong to the caller and are freed by the matching function, which takes null.
//
// Threads. Any thread may call any function with any handle, at the same time. A handle is freed
// once, while nobody else uses it. Handles may be freed in any order: a stream keeps its model
// alive. A process that forks must not use handles in the child.

#include <stddef.h>
#include <stdint.h>

// The version of this header. Later versions add functions and change none.
#define SAKER_API_VERSION 1

// Marks a function that the library exports.
#define SAKER_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

// The outcome of a call. Failures are below SAKER_TIMEOUT.
typedef enum SakerStatus {
  SAKER_OK = 0,                // There is a result.
  SAKER_INVALID_ARGUMENT = 1,  // The caller's fault: an option, a request, a null handle.
  SAKER_NOT_FOUND = 2,         // A model, an adapter or a file is missing.
  SAKER_UNSUPPORTED = 3,       // Valid, but this build or model cannot do it.
  SAKER_CORRUPT_DATA = 4,      // A file, a checkpoint or a JSON text breaks its format.
  SAKER_CAPACITY = 5,          // Memory or the queue is full: try later.
  SAKER_CANCELLED = 6,         // There is no answer because the request was dropped.
  SAKER_INTERNAL = 7,          // A bug of Saker.
  SAKER_TIMEOUT = 64,          // Nothing came within the time. No failure.
  SAKER_END = 65,              // Nothing more will come. No failure.
} SakerStatus;

// The kind of an event.
typedef enum SakerEventKind {
  SAKER_EVENT_PROMPT = 0,     // More of the prompt has run.
  SAKER_EVENT_REASONING = 1,  // Text that the model thinks before it answers.
  SAKER_EVENT_CONTENT = 2,    // Text of the answer.
  SAKER_EVENT_CALL = 3,       // A call of a tool begins.
  SAKER_EVENT_ARGUMENTS = 4,  // More of a call's arguments.
  SAKER_EVENT_CALL_END = 5,   // A call is whole.
  SAKER_EVENT_TOKEN = 6,      // A token was chosen; only with "token_events".
  SAKER_EVENT_END = 7,        // An answer is whole.
  SAKER_EVENT_FAILURE = 8,    // An answer failed.
} SakerEventKind;

typedef struct SakerText SakerText;        // Bytes: a text, JSON or a message.
typedef struct SakerTokens SakerTokens;    // Token ids.
typedef struct SakerVectors SakerVectors;  // Vectors of texts.
typedef struct SakerModel SakerModel;      // A loaded model.
typedef struct SakerStream SakerStream;    // The events of one request.
typedef struct SakerEvent SakerEvent;      // One of them.

// The library's SAKER_API_VERSION, which is at least that of the header a program was built with.
SAKER_API uint32_t saker_api_version(void);
// The version of Saker, such as "0.1.0".
SAKER_API const char* saker_version(void);
// The status in one word, such as "not_found"; "unknown" for other numbers.
SAKER_API const char* saker_status_name(SakerStatus status);
// Messages of the log go to standard error: "trace", "debug", "info", "warn", "error" or "off".
// Before the first call: the environment variable SAKER_LOG, else "warn".
SAKER_API SakerStatus saker_set_log_level(const char* level, SakerText** message);

// The bytes, with a NUL behind them. They live as long as the handle.
SAKER_API const char* saker_text_data(const SakerText* text);
SAKER_API size_t saker_text_size(const SakerText* text);  // Without that NUL.
SAKER_API void saker_text_free(SakerText* text);          // Takes null.

// The ids. They live as long as the handle.
SAKER_API const int32_t* saker_tokens_data(const SakerTokens* tokens);
SAKER_API size_t saker_tokens_count(const SakerTokens* tokens);  // Their number.
SAKER_API void saker_tokens_free(SakerTokens* tokens);           // Takes null.

// The elements, one vector after the other. They live as long as the handle.
SAKER_API const float* saker_vectors_data(const SakerVectors* vectors);
SAKER_API size_t saker_vectors_count(const SakerVectors* vectors);       // Their number.
SAKER_API size_t saker_vectors_dimensions(const SakerVectors* vectors);  // Elements of each.
SAKER_API int64_t saker_vectors_tokens(const SakerVectors* vectors);     // That ran, in all.
SAKER_API void saker_vectors_free(SakerVectors* vectors);                // Takes null.

// Loads a folder, a GGUF file or a model of the hub cache by its name; null or "": the bundled one.
// `options` is a JSON object (docs/c-api.md); null: none.
SAKER_API SakerStatus
saker_model_load(const char* model, const char* options, SakerModel** out, SakerText** message);
// Frees the model once no stream of it is left. May wait for the pass that runs.
SAKER_API void saker_model_free(SakerModel* model);
// Facts about the model as JSON.
SAKER_API SakerStatus
saker_model_facts(const SakerModel* model, SakerText** json, SakerText** message);
// Counts of the queue and the prefix cache as JSON. Never waits for a pass.
SAKER_API SakerStatus
saker_model_statistics(const SakerModel* model, SakerText** json, SakerText** message);
// Loads an adapter under a name that "view" and "views" of requests take.
SAKER_API SakerStatus
saker_model_add_adapter(SakerModel* model, const char* name, const char* path, SakerText** message);
// The adapters as JSON: [{"name", "path"}, ...].
SAKER_API SakerStatus
saker_model_adapters(const SakerModel* model, SakerText** json, SakerText** message);

// The tokens of a text of `size` bytes. `options`: {"add_special_tokens": true}, or null.
SAKER_API SakerStatus saker_model_tokenize(
    const SakerModel* model,
    const char* text,
    size_t size,
    const char* options,
    SakerTokens** out,
    SakerText** message
);
// The text of tokens. `options`: {"skip_special_tokens": false}, or null.
SAKER_API SakerStatus saker_model_detokenize(
    const SakerModel* model,
    const int32_t* ids,
    size_t count,
    const char* options,
    SakerText** out,
    SakerText** message
);
// The prompt that the chat template makes of a request's messages. A request may also have
// "add_generation_prompt" here.
SAKER_API SakerStatus saker_model_apply_template(
    const SakerModel* model, const char* request, SakerText** out, SakerText** message
);
// The tokens of a request's prompt, as they would run.
SAKER_API SakerStatus saker_model_prompt_tokens(
    const SakerModel* model, const char* request, SakerTokens** out, SakerText** message
);

// Queues a request: a JSON object as a record of `saker generate`.
SAKER_API SakerStatus
saker_model_submit(SakerModel* model, const char* request, SakerStream** out, SakerText** message);
// Runs a request and waits for its answer: the JSON object that `saker generate --json` prints.
SAKER_API SakerStatus
saker_model_generate(SakerModel* model, const char* request, SakerText** json, SakerText** message);

// Waits for the next event, at most this long; below 0: without a limit, 0: only looks. SAKER_OK
// gives an event, SAKER_TIMEOUT and SAKER_END give none. A failed answer is an event, too. Each
// event goes to one caller.
SAKER_API SakerStatus
saker_stream_next(SakerStream* stream, int64_t timeout_ms, SakerEvent** out, SakerText** message);
// Ends the answers with what they have so far; their last events follow.
SAKER_API void saker_stream_cancel(SakerStream* stream);
// Calls `ready` when there is an event to read after there was none, at once if there is one now.
// It runs on any thread, one call at a time, and must not block or call Saker. Replaces the last
// one, which is not called any more once this returns; null: none.
SAKER_API SakerStatus saker_stream_on_ready(
    SakerStream* stream, void (*ready)(void* context), void* context, SakerText** message
);
// Cancels what still runs, and frees the stream.
SAKER_API void saker_stream_free(SakerStream* stream);

SAKER_API SakerEventKind saker_event_kind(const SakerEvent* event);  // Its kind.
// The answer's number, from 0: "n" asks for several.
SAKER_API int32_t saker_event_choice(const SakerEvent* event);
// A piece of text, the whole text at the end, the line of a failure; else "". A token's text may be
// a part of a character. It lives as long as the event.
SAKER_API const char* saker_event_text(const SakerEvent* event);
SAKER_API size_t saker_event_text_size(const SakerEvent* event);  // Without the NUL.
// The kind of a failure; SAKER_OK for other events.
SAKER_API SakerStatus saker_event_status(const SakerEvent* event);
// All of the event as a JSON object; at the end with the answer as "result".
SAKER_API SakerStatus
saker_event_json(const SakerEvent* event, SakerText** json, SakerText** message);
SAKER_API void saker_event_free(SakerEvent* event);  // Takes null.

// Log-probabilities of given tokens. `request` is a record of `saker score -f`, with "views",
// "top_k", "stride" and "kv_bits" beside it; the result is the object that `saker score --json`
// prints.
SAKER_API SakerStatus
saker_model_score(SakerModel* model, const char* request, SakerText** json, SakerText** message);
// Vectors of texts: {"inputs": [TEXT or TOKENS, ...]} with the options of docs/c-api.md.
SAKER_API SakerStatus
saker_model_embed(SakerModel* model, const char* request, SakerVectors** out, SakerText** message);

#ifdef __cplusplus
}
#endif
