// SPDX-License-Identifier: Apache-2.0
// Streams an answer and cancels another one: stream [MODEL]. Without MODEL: the bundled demo model.
//   cc stream.c $(pkg-config --cflags --libs saker) -o stream
#include <saker.h>

#include <stdio.h>
#include <stdlib.h>

static void check(SakerStatus status, SakerText* message) {
  if (status != SAKER_OK) {
    fprintf(stderr, "error: %s: %s\n", saker_status_name(status), saker_text_data(message));
    exit(1);
  }
}

// Prints the content of a request's answer; cancels it after `pieces` pieces, unless that is 0.
static void stream(SakerModel* model, const char* request, int pieces) {
  SakerText* message = NULL;
  SakerStream* stream = NULL;
  check(saker_model_submit(model, request, &stream, &message), message);
  SakerEvent* event = NULL;
  SakerStatus status;
  int count = 0;
  while ((status = saker_stream_next(stream, -1, &event, &message)) == SAKER_OK) {
    switch (saker_event_kind(event)) {
      case SAKER_EVENT_CONTENT:
        fputs(saker_event_text(event), stdout);
        fflush(stdout);
        if (++count == pieces) {
          saker_stream_cancel(stream);
        }
        break;
      case SAKER_EVENT_END: {
        SakerText* json = NULL;
        check(saker_event_json(event, &json, &message), message);
        fprintf(stderr, "%s\n", saker_text_data(json));  // Finish reason, tokens, rates.
        saker_text_free(json);
        break;
      }
      case SAKER_EVENT_FAILURE:
        fprintf(stderr, "error: %s\n", saker_event_text(event));
        exit(1);
      default:
        break;
    }
    saker_event_free(event);
  }
  if (status != SAKER_END) {
    check(status, message);
  }
  saker_stream_free(stream);
  printf("\n");
}

int main(int argc, char** argv) {
  SakerText* message = NULL;
  SakerModel* model = NULL;
  check(saker_model_load(argc > 1 ? argv[1] : NULL, "{\"threads\": 1}", &model, &message), message);
  stream(
      model,
      "{\"messages\": [{\"role\": \"user\", \"content\": \"What does a fox eat?\"}]}",
      0
  );
  stream(model, "{\"prompt\": \"Once upon a time\", \"ignore_eos\": true, \"max_tokens\": -1}", 3);
  saker_model_free(model);
  return 0;
}
