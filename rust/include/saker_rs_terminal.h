// SPDX-License-Identifier: Apache-2.0
#pragma once

// The part of the C ABI that talks to terminals, by the rules of saker_rs.h.

#include <saker_rs.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- line editor ----
typedef struct SakerRsEditor SakerRsEditor;

typedef enum SakerRsLine {
  kSakerRsLineText = 0,         // `out` is the line, without its end
  kSakerRsLineInterrupted = 1,  // Ctrl-C
  kSakerRsLineEnd = 2,          // Ctrl-D or end of input
  kSakerRsLineError = 3,        // `error` says why
  kSakerRsLineNotUtf8 = 4,      // what was typed is lost, the next line can be read
} SakerRsLine;

// `history_path` names the history file; a missing file is an empty history, an empty path means
// none.
bool saker_rs_editor_new(
    const uint8_t* history_path, size_t size, SakerRsEditor** out, SakerRsBytes* error
);
// Completions of the Tab key: whole commands, and texts before names of files, one per line. Also
// whether the prompt is coloured.
bool saker_rs_editor_prepare(
    SakerRsEditor* editor,
    const uint8_t* phrases,
    size_t phrases_size,
    const uint8_t* files,
    size_t files_size,
    bool colored,
    SakerRsBytes* error
);
// Saves the history.
void saker_rs_editor_free(SakerRsEditor* editor);
// Reads one line, or several if a backslash or three quotation marks continue it. Non-blank lines
// are added to the history.
SakerRsLine saker_rs_editor_read(
    SakerRsEditor* editor,
    const uint8_t* prompt,
    size_t size,
    SakerRsBytes* out,
    SakerRsBytes* error
);

// Columns that a text in UTF-8 takes on a terminal.
size_t saker_rs_text_width(const uint8_t* text, size_t size);

// ---- progress bar on stderr, hidden if that is no terminal ----
// A bar or group may be null, and is if there is no memory for it: then nothing is shown.
typedef struct SakerRsProgress SakerRsProgress;

// `bytes`: count in KiB, MiB ... instead of steps. A total of 0 shows a spinner.
SakerRsProgress* saker_rs_progress_new(
    uint64_t total, const uint8_t* label, size_t size, uint8_t unit
);
void saker_rs_progress_set(SakerRsProgress* progress, uint64_t position);
void saker_rs_progress_set_total(SakerRsProgress* progress, uint64_t total);
// Clears the bar.
void saker_rs_progress_free(SakerRsProgress* progress);

// Bars one below the other. Bars may outlive their group.
typedef struct SakerRsProgressGroup SakerRsProgressGroup;

SakerRsProgressGroup* saker_rs_progress_group_new(void);
// A bar of bytes at the end.
SakerRsProgress* saker_rs_progress_group_add(
    SakerRsProgressGroup* group, uint64_t total, const uint8_t* label, size_t size
);
// Clears the remains of its bars.
void saker_rs_progress_group_free(SakerRsProgressGroup* group);

#ifdef __cplusplus
}
#endif
