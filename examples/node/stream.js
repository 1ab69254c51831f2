// SPDX-License-Identifier: Apache-2.0
// Streams an answer and cancels another one: node stream.js [MODEL]. Without MODEL: the bundled demo model.
// SAKER_LIBRARY names the library if the system does not find it.
import koffi from "koffi";
import process from "node:process";

const OK = 0;
const END = 65;
const CONTENT = 2;
const ANSWER_END = 7;
const FAILURE = 8;

const names = { darwin: "libsaker_c.dylib" };
const library = koffi.load(process.env.SAKER_LIBRARY ?? names[process.platform] ?? "libsaker_c.so.1");
for (const name of ["SakerText", "SakerModel", "SakerStream", "SakerEvent"]) {
  koffi.opaque(name);
}
const textData = library.func("const char *saker_text_data(const SakerText *text)");
const textFree = library.func("void saker_text_free(SakerText *text)");
const modelLoad = library.func(
  "int saker_model_load(const char *model, const char *options, _Out_ SakerModel **out, _Out_ SakerText **message)",
);
const modelFree = library.func("void saker_model_free(SakerModel *model)");
const modelSubmit = library.func(
  "int saker_model_submit(SakerModel *model, const char *request, _Out_ SakerStream **out, _Out_ SakerText **message)",
);
const streamNext = library.func(
  "int saker_stream_next(SakerStream *stream, int64_t timeout_ms, _Out_ SakerEvent **out, _Out_ SakerText **message)",
);
const streamCancel = library.func("void saker_stream_cancel(SakerStream *stream)");
const streamFree = library.func("void saker_stream_free(SakerStream *stream)");
const eventKind = library.func("int saker_event_kind(const SakerEvent *event)");
const eventText = library.func("const char *saker_event_text(const SakerEvent *event)");
const eventJson = library.func(
  "int saker_event_json(const SakerEvent *event, _Out_ SakerText **json, _Out_ SakerText **message)",
);
const eventFree = library.func("void saker_event_free(SakerEvent *event)");

// The bytes of a text, which is freed.
function taken(text) {
  const value = textData(text);
  textFree(text);
  return value;
}

function check(status, message) {
  if (status !== OK) {
    throw new Error(taken(message[0]));
  }
}

// Calls that wait run on a thread of their own, so that Node goes on meanwhile.
function waiting(call, ...values) {
  return new Promise((resolve, reject) => {
    call.async(...values, (error, status) => (error ? reject(error) : resolve(status)));
  });
}

async function* events(stream) {
  for (;;) {
    const [event, message] = [[null], [null]];
    const status = await waiting(streamNext, stream, -1, event, message);
    if (status === END) {
      return;
    }
    check(status, message);
    try {
      const kind = eventKind(event[0]);
      const json = [null];
      if (kind === ANSWER_END) {
        check(eventJson(event[0], json, message), message);
      }
      yield { kind, text: eventText(event[0]), json: json[0] && taken(json[0]) };
    } finally {
      eventFree(event[0]);
    }
  }
}

// Prints the content of a request's answer; cancels it after so many pieces, if that is given.
async function show(model, request, pieces) {
  const [stream, message] = [[null], [null]];
  check(modelSubmit(model, JSON.stringify(request), stream, message), message);
  let count = 0;
  try {
    for await (const event of events(stream[0])) {
      if (event.kind === CONTENT) {
        process.stdout.write(event.text);
        if (++count === pieces) {
          streamCancel(stream[0]);
        }
      } else if (event.kind === ANSWER_END) {
        process.stderr.write(`${event.json}\n`);
      } else if (event.kind === FAILURE) {
        throw new Error(event.text);
      }
    }
  } finally {
    streamFree(stream[0]);
  }
  process.stdout.write("\n");
}

const [model, message] = [[null], [null]];
check(await waiting(modelLoad, process.argv[2] ?? null, '{"threads": 1}', model, message), message);
try {
  await show(model[0], { messages: [{ role: "user", content: "What does a fox eat?" }] });
  await show(model[0], { prompt: "Once upon a time", ignore_eos: true, max_tokens: -1 }, 3);
} finally {
  modelFree(model[0]);
}
