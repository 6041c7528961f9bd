/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env.h - the environment, read once.
 *
 * What an elevated process must not read is NULL here, with one note for each
 * variable that was ignored. Nothing else of Hob reads the environment.
 */
#ifndef HOB__ENV_H
#define HOB__ENV_H

#include "arena.h"
#include "manifest.h"
#include "os.h"
#include "reasons.h"

#include <hob/status.h>

#include <stdbool.h>

enum hob__trust_mode {
    HOB__TRUST_STRICT, /* untrusted files are refused */
    HOB__TRUST_WARN,   /* they are used, with a warning */
    HOB__TRUST_OFF
};

struct hob__env_note {
    const char *variable;
    enum hob__reason reason;
    const char *detail;
};

/* Strings are copies; NULL means unset, empty or ignored. */
struct hob__env {
    bool is_elevated;
    bool is_root;
    enum hob__trust_mode trust;
    const char *plugin_path;
    const char *add_plugin_path;
    const char *config;
    struct hob__strings disable; /* patterns */
    struct hob__strings only;
    const char *log;
    const char *log_format;
    const char *log_file;
    const char *device;
    const char *home;            /* absolute, likewise below */
    const char *xdg_config_home; /* with its default; NULL: no user folders */
    const char *xdg_data_home;
    struct hob__strings xdg_config_dirs; /* with their defaults */
    struct hob__strings xdg_data_dirs;
    struct hob__strings library_path; /* LD_LIBRARY_PATH */
    struct hob__env_note *notes;
    uint32_t note_count;
    uint32_t note_capacity;
    struct hob__arena arena;
};

/* Fails with HOB_ERR_MEMORY; end with hob__env_release() either way. */
HOB_MUST_CHECK hob_status hob__env_read(const struct hob_os_ops *os,
                                        struct hob__env *out_env,
                                        hob_error *error);

/*
 * Note each HOB_* variable that neither Hob nor one of the COUNT names in
 * OTHERS knows, with the nearest name. HOB_TEST_* is the tests' own.
 */
HOB_MUST_CHECK hob_status hob__env_note_unknown(const struct hob_os_ops *os,
                                                struct hob__env *env,
                                                const char *const *others,
                                                uint32_t count);

/* Add a note; VARIABLE and DETAIL are borrowed, DETAIL NULL is no memory. */
HOB_MUST_CHECK hob_status hob__env_add_note(struct hob__env *env,
                                            const char *variable,
                                            enum hob__reason reason,
                                            const char *detail);

void hob__env_release(struct hob__env *env);

/*
 * Split LIST at SEPARATOR; double quotes allow it inside an element. Empty
 * elements are left out. Fails with HOB_ERR_MEMORY.
 */
HOB_MUST_CHECK hob_status hob__env_split(struct hob__arena *arena,
                                         const char *list, char separator,
                                         struct hob__strings *out_items);

#endif
