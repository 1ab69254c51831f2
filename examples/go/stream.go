// SPDX-License-Identifier: Apache-2.0

// Streams an answer and cancels another one: stream [MODEL]. Without MODEL: the bundled demo model.
//
//	CGO_CFLAGS=$(pkg-config --cflags saker) CGO_LDFLAGS=$(pkg-config --libs saker) go run . MODEL
package main

/*
#cgo LDFLAGS: -lsaker_c
#include <saker.h>
#include <stdlib.h>
*/
import "C"

import (
	"errors"
	"os"
	"unsafe"
)

// taken returns the bytes of a text, which is freed.
func taken(text *C.SakerText) string {
	defer C.saker_text_free(text)
	return C.GoStringN(C.saker_text_data(text), C.int(C.saker_text_size(text)))
}

func checked(status C.SakerStatus, message *C.SakerText) error {
	if status == C.SAKER_OK {
		return nil
	}
	return errors.New(taken(message))
}

func load(path string) (*C.SakerModel, error) {
	name, options := C.CString(path), C.CString(`{"threads": 1}`)
	defer C.free(unsafe.Pointer(name))
	defer C.free(unsafe.Pointer(options))
	var model *C.SakerModel
	var message *C.SakerText
	status := C.saker_model_load(name, options, &model, &message)
	return model, checked(status, message)
}

// show prints the content of a request's answer, and cancels it after so many pieces, unless that is 0.
func show(model *C.SakerModel, request string, pieces int) error {
	asked := C.CString(request)
	defer C.free(unsafe.Pointer(asked))
	var stream *C.SakerStream
	var message *C.SakerText
	if err := checked(C.saker_model_submit(model, asked, &stream, &message), message); err != nil {
		return err
	}
	defer C.saker_stream_free(stream)
	for count := 0; ; {
		var event *C.SakerEvent
		status := C.saker_stream_next(stream, -1, &event, &message)
		if status == C.SAKER_END {
			os.Stdout.WriteString("\n")
			return nil
		}
		if err := checked(status, message); err != nil {
			return err
		}
		text := C.GoStringN(C.saker_event_text(event), C.int(C.saker_event_text_size(event)))
		var err error
		switch C.saker_event_kind(event) {
		case C.SAKER_EVENT_CONTENT:
			os.Stdout.WriteString(text)
			if count++; count == pieces {
				C.saker_stream_cancel(stream)
			}
		case C.SAKER_EVENT_END:
			var json *C.SakerText
			if err = checked(C.saker_event_json(event, &json, &message), message); err == nil {
				os.Stderr.WriteString(taken(json) + "\n")
			}
		case C.SAKER_EVENT_FAILURE:
			err = errors.New(text)
		}
		C.saker_event_free(event)
		if err != nil {
			return err
		}
	}
}

func run() error {
	path := ""
	if len(os.Args) > 1 {
		path = os.Args[1]
	}
	model, err := load(path)
	if err != nil {
		return err
	}
	defer C.saker_model_free(model)
	if err := show(model, `{"messages": [{"role": "user", "content": "What does a fox eat?"}]}`, 0); err != nil {
		return err
	}
	return show(model, `{"prompt": "Once upon a time", "ignore_eos": true, "max_tokens": -1}`, 3)
}

func main() {
	if err := run(); err != nil {
		os.Stderr.WriteString("error: " + err.Error() + "\n")
		os.Exit(1)
	}
}
