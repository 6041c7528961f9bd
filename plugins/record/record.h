/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - one record layer of one device stack, and what its files share.
 *
 *   plugin.c   the tables, and the life of a decorator: read it first
 *   options.c  what stands in the braces of record{...}
 *   step.c     one call as one line of the program
 *   input.c    elements that came from outside, as NPY files
 *   journal.c  the file, which is whole after every line
 */
#ifndef HOB_RECORD_H
#define HOB_RECORD_H

#include "journal.h"

#include <hob/ext/plugin.h>

#include <pthread.h>
#include <stdatomic.h>

/* The interface by which a layer finds itself in a device. */
#define REC_INTERFACE "record.layer"

/* An instance of the plugin: one a runtime. */
struct rec_instance {
    const struct hob_host *host;
    atomic_int is_forked; /* this process is a child: its files are not ours */
};

/*
 * A value of the program: what the state word of a handle points at. Handles
 * that share elements share it; it goes with the last of them.
 */
struct rec_value {
    atomic_uint refs; /* handles */
    char kind;        /* 'x': came from outside; 'v': a step made it */
    uint8_t is_used;  /* a step has it as its argument */
    uint64_t number;  /* with the kind, its name: "v12" */
    struct hob_meta meta;
    hob_tensor *kept; /* to save its elements; NULL: nobody wants them */
};

/* An input that was written, so that equal elements are written once. */
struct rec_input {
    uint64_t hash[2];
    struct hob_meta meta;
    uint64_t number;
};

/* A value that no step used. */
struct rec_output {
    uint64_t number;
    struct hob_meta meta;
    int has_file;
};

struct rec_layer {
    const struct rec_instance *instance; /* borrowed, outlives the layer */
    const struct hob_host *host;
    int32_t level;
    uint8_t with_times;
    uint8_t with_outputs;
    atomic_int is_off; /* after a failure: nothing is recorded any more */

    pthread_mutex_t lock; /* all below */
    struct rec_journal journal;
    uint64_t value_count; /* numbers of results given so far */
    uint64_t input_count;
    struct rec_input *inputs;
    uint64_t input_capacity;
    struct rec_output *outputs; /* in the order in which they died */
    uint64_t output_count;
    uint64_t output_capacity;
};

/* Whether LAYER has stopped recording. */
static inline int rec_is_off(const struct rec_layer *layer)
{
    return atomic_load_explicit(&layer->is_off, memory_order_relaxed) ||
           atomic_load_explicit(&layer->instance->is_forked,
                                memory_order_relaxed);
}

/* Stop recording: say why in the log, once. The program goes on. */
void rec_stop_locked(struct rec_layer *layer, const char *format, ...)
    HOB_PRINTF(2, 3);

/* The same after the journal has FAILED, an errno. */
void rec_stop_journal_locked(struct rec_layer *layer, int failed);

/* ---- options.c ---- */

/*
 * Read OPTIONS, a flat JSON object of strings or NULL, into LAYER; *OUT_PATH
 * is the caller's, who frees it. On failure it is NULL and *OUT_MESSAGE says
 * what is wrong.
 */
hob_status rec_options_read(struct rec_layer *layer, const char *text,
                            char **out_path, char **out_message);

/* ---- input.c ---- */

/*
 * The number of the input that has TENSOR's elements: one that was written
 * before, or a new one, whose file and line are written now. 0, with the
 * recorder stopped, on failure.
 */
uint64_t rec_input_locked(struct rec_layer *layer, hob_tensor *tensor);

/* Write TENSOR's elements beside the program, for the value called NAME. The
 * recorder stops on failure. */
void rec_array_save_locked(struct rec_layer *layer, const char *name,
                           hob_tensor *tensor);

/* Write META, and the file of the value called NAME if HAS_FILE, as the rest
 * of an object that has begun: , "dtype": ... } */
void rec_array_describe(const struct rec_layer *layer, FILE *out,
                        const char *name, const struct hob_meta *meta,
                        int has_file);

/* TENSOR's dtype and shape. */
struct hob_meta rec_meta_of(const hob_tensor *tensor);

/* ---- step.c ---- */

/* A call on its way. */
struct rec_step {
    char *text;                /* its line, without the closing bracket */
    struct rec_value **values; /* one a result; a list may have many */
    uint32_t count;
};

/* Write CALL down before it runs. Returns 0, with nothing to end, if the
 * recorder has stopped. */
int rec_step_begin_locked(struct rec_layer *layer, const struct hob_call *call,
                          struct rec_step *step);

/* CALL ended with STATUS after TIME_NS: complete its line and name its
 * results. Frees what STEP holds. */
void rec_step_end_locked(struct rec_layer *layer, const struct hob_call *call,
                         struct rec_step *step, hob_status status,
                         uint64_t time_ns);

/* The last handle of VALUE is gone: note it as an output if no step used it. */
void rec_value_end(struct rec_layer *layer, struct rec_value *value);

/* The outputs as a comma-separated list, by number; the caller frees it. NULL
 * without memory. */
char *rec_outputs_text(struct rec_layer *layer);

/* TEXT of SIZE bytes as a JSON string. */
void rec_put_string(FILE *out, const char *text, size_t size);

#endif
