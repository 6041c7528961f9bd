/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/runtime.h - open Hob, see what it found, open devices.
 *
 * A runtime reads the config and the manifests when it is opened; it opens no
 * library until a device or an op of it is first needed. Two runtimes can
 * live in one process and share nothing but what the plugins must share.
 *
 * Every function may be called from any thread.
 */
#ifndef HOB_RUNTIME_H
#define HOB_RUNTIME_H

#include <hob/host.h>

HOB_BEGIN_DECLS

struct hob_plugin;

/* What happens when an op fails; see hob/scope.h. */
enum hob_policy {
    HOB_POLICY_PANIC = 0, /* the handler is told, then the process aborts */
    HOB_POLICY_REPORT = 1 /* the handler is told once, the program goes on */
};

/* A diagnostic: STATUS, the op (NULL outside one) and the whole message. */
typedef void (*hob_panic_fn)(void *context, hob_status status, const char *op,
                             const char *message);

/* A plugin that is linked into the program. */
struct hob_static_plugin {
    const char *manifest; /* JSON text */
    const struct hob_plugin *(*entry)(const struct hob_host *host);
};

/* Set struct_size with HOB_RUNTIME_OPTIONS_INIT; zero means the default. */
struct hob_runtime_options {
    uint32_t struct_size;
    uint32_t policy; /* enum hob_policy */
    hob_panic_fn on_panic;
    void *on_panic_context;
    const char *const *plugin_paths; /* manifests or directories, absolute */
    uint32_t plugin_path_count;
    uint32_t exclusive; /* search nothing but plugin_paths and static ones */
    const struct hob_static_plugin *static_plugins;
    uint32_t static_plugin_count;
    uint32_t threads;   /* of the host's pool; 0: one a core */
    const char *config; /* JSON text, merged last; may be NULL */
    uint64_t seed;      /* of the generator that scopes share at first */
    uint32_t debug;     /* poison freed memory, compare inferred metadata */
    uint32_t reserved;
};

#define HOB_RUNTIME_OPTIONS_INIT                                               \
    {                                                                          \
        sizeof(struct hob_runtime_options), 0, NULL, NULL, NULL, 0, 0, NULL,   \
            0, 0, NULL, 0, 0, 0                                                \
    }

/*
 * Open a runtime: read the config, discover the plugins.
 *
 * OPTIONS may be NULL. On success the caller closes *OUT_RUNTIME with
 * hob_runtime_close(). Fails with HOB_ERR_CONFIG if the config is wrong.
 * A bad plugin is a record (see hob_runtime_report), not a failure.
 */
HOB_API HOB_MUST_CHECK hob_status
hob_runtime_open(const struct hob_runtime_options *options,
                 hob_runtime **out_runtime, hob_error *error);

/*
 * Close RUNTIME: its devices, then its plugins in reverse order of loading.
 * Libraries stay mapped. Fails with HOB_ERR_BUSY, naming the counts, while
 * tensors, scopes or grads are alive; nothing is closed then. Accepts NULL.
 */
HOB_API HOB_MUST_CHECK hob_status hob_runtime_close(hob_runtime *runtime,
                                                    hob_error *error);

/* One line of the loader's report; the strings are borrowed for the visit. */
struct hob_plugin_record {
    const char *id;            /* NULL where the manifest could not say */
    const char *version;       /* NULL likewise */
    const char *kind;          /* "backend", "decorator", "extension" or NULL */
    const char *manifest;      /* path as found */
    const char *manifest_real; /* after realpath; NULL if none */
    const char *library;       /* path; NULL if not known */
    const char *rule;          /* "DISC-7" */
    const char *state;         /* "LOADED" ... */
    const char *reason;        /* reason code, "OK" if there is none */
    const char *severity;      /* "error", "warning", "info", "debug" */
    const char *detail;        /* path, errno, line and column */
    const char *hint;          /* what to do */
    uint64_t time_ns;          /* when, CLOCK_REALTIME */
    const char *selector;      /* what devices name; NULL for extensions */
};

/* Call VISIT for every candidate, in order of discovery; stop on nonzero. */
HOB_API void hob_runtime_report(hob_runtime *runtime,
                                int (*visit)(void *context,
                                             const struct hob_plugin_record *r),
                                void *context);

/* Call VISIT for every place that was searched: rule, path, what came of it. */
HOB_API void hob_runtime_searched(hob_runtime *runtime,
                                  int (*visit)(void *context, const char *rule,
                                               const char *path,
                                               const char *outcome),
                                  void *context);

/*
 * Tell, as text for people, what became of plugin ID (an id or a selector):
 * all its records, and the places that were searched if there is none. The
 * caller frees *OUT_TEXT with hob_text_free(). Fails with HOB_ERR_MEMORY.
 */
HOB_API HOB_MUST_CHECK hob_status hob_plugin_why(hob_runtime *runtime,
                                                 const char *id,
                                                 char **out_text,
                                                 hob_error *error);

/*
 * The merged configuration as a JSON object: "files" that were read, "device",
 * "plugins", "log", "cache_dir", and "notes": remarks on files and variables,
 * each with "where", "reason", "severity", "detail" and "hint". The caller frees
 * *OUT_JSON with hob_text_free(). Fails with HOB_ERR_MEMORY.
 */
HOB_API HOB_MUST_CHECK hob_status hob_runtime_config(hob_runtime *runtime,
                                                     char **out_json,
                                                     hob_error *error);

/* Free a text that Hob handed over. Accepts NULL. */
HOB_API void hob_text_free(char *text);

/*
 * Open the device that SPEC names, as in "autodiff(flex)",
 * "autodiff{checkpoint=balanced}(flex)" or "cube-cuda:1". A NULL or empty
 * SPEC means HOB_DEVICE, else the config's "device" list, of which the first
 * that opens wins. Spaces around its parts, names and values do not count.
 *
 * On success *OUT_DEVICE holds one reference, which the caller gives back
 * with hob_device_unref(); it keeps RUNTIME open. Equal specs give the same
 * device. On failure it is NULL and ERROR, if given, says which plugin was
 * refused and why. Fails with HOB_ERR_DEVICE if nothing serves SPEC,
 * HOB_ERR_ARGUMENT if it is malformed.
 */
HOB_API HOB_MUST_CHECK hob_status hob_device_open(hob_runtime *runtime,
                                                  const char *spec,
                                                  hob_device **out_device,
                                                  hob_error *error);
HOB_API void hob_device_ref(hob_device *device);
HOB_API void hob_device_unref(hob_device *device); /* accepts NULL */

/* The canonical spec of DEVICE, borrowed. */
HOB_API const char *hob_device_name(const hob_device *device);
HOB_API hob_runtime *hob_device_runtime(const hob_device *device);
/* The device one level down; NULL for a base. Borrowed. */
HOB_API hob_device *hob_device_below(const hob_device *device);
/* Wait for all work on DEVICE; the first failure of earlier work, if any. */
HOB_API HOB_MUST_CHECK hob_status hob_device_sync(hob_device *device,
                                                  hob_error *error);

/*
 * Say in *OUT, which starts as HOB_MEMORY_STATS_INIT, what the memory of
 * DEVICE's base is used for. HOB_ERR_UNSUPPORTED where the backend keeps no
 * account.
 */
HOB_API HOB_MUST_CHECK hob_status hob_device_memory(
    hob_device *device, struct hob_memory_stats *out, hob_error *error);
/* Let peak_bytes be what is in use now. HOB_ERR_UNSUPPORTED where there is no
 * peak. */
HOB_API HOB_MUST_CHECK hob_status hob_device_reset_peak(hob_device *device,
                                                        hob_error *error);
/*
 * Give the free memory of DEVICE's base back to the system; what tensors hold
 * stays. A backend keeps what tensors gave back for the next ones, up to a
 * bound of its own. HOB_ERR_UNSUPPORTED where it keeps none.
 */
HOB_API HOB_MUST_CHECK hob_status hob_device_trim(hob_device *device,
                                                  hob_error *error);

/* One base device that a plugin offers. */
struct hob_device_record {
    const char *spec;     /* "flex", "cube-cuda:1" */
    const char *hardware; /* for people; NULL if not open-able */
    uint64_t memory_bytes;
    const char *plugin;
    const char *problem; /* why it cannot be opened; NULL if it can */
};

/* Call VISIT for every device of every backend, those of a higher priority
 * first; this loads the backends. */
HOB_API void hob_runtime_devices(
    hob_runtime *runtime,
    int (*visit)(void *context, const struct hob_device_record *record),
    void *context);

/* One operation that this runtime knows. */
struct hob_op_record {
    const char *name;
    const char *signature; /* as its author wrote it */
    const char *flat;      /* the arguments of a call, without types */
    const char *doc;
    const char *family; /* "arithmetic"; the plugin's id for extensions */
    const char *fuse;
    uint32_t id;
    uint32_t has_body;
    /* Comma-separated selectors that have an implementation or are listed. */
    const char *selectors;
};

/* Call VISIT for every op, by number. Loads no library. */
HOB_API void hob_runtime_ops(hob_runtime *runtime,
                             int (*visit)(void *context,
                                          const struct hob_op_record *record),
                             void *context);

/*
 * Find the op called NAME and give its number, for hob_call_op(). Fails with
 * HOB_ERR_NOT_FOUND, naming the nearest name.
 */
HOB_API HOB_MUST_CHECK hob_status hob_op_find(hob_runtime *runtime,
                                              const char *name,
                                              uint32_t *out_id,
                                              hob_error *error);

/*
 * The signature of the op with the number OP as a call sees it: without type
 * names, the fields of structs and enums one by one. It lives as long as
 * RUNTIME. NULL if no op has this number.
 */
HOB_API const char *hob_op_signature(hob_runtime *runtime, uint32_t op);

/* How one backend or decorator serves an op. */
struct hob_op_support {
    const char *selector; /* "flex", "autodiff" */
    /* A backend: "kernel", "view" (completed by the core), "body", "not
     * listed" or "none". A decorator: "rule", "body", "passes on", "puts
     * off", "runs at once" (of one that puts ops off), "not listed" or
     * "none". Either: "cannot be opened". A backend has a record
     * more for each plugin that implements the op for it: "kernel of ID", or
     * "kernel of ID, not used: WHY". */
    const char *how;
    const char *dtypes; /* kernels: of the first tensor, "f64 f32"; else "" */
    uint32_t is_backend;
};

/*
 * Call VISIT for every backend and decorator that is usable, until it returns
 * nonzero; this loads them, and the extension that declares the op. Strings
 * are borrowed for the visit. HOB_ERR_NOT_FOUND if no op has the number OP.
 */
HOB_API HOB_MUST_CHECK hob_status hob_runtime_op_support(
    hob_runtime *runtime, uint32_t op,
    int (*visit)(void *context, const struct hob_op_support *support),
    void *context, hob_error *error);

/* The version of the library, as in "0.1.0". */
HOB_API const char *hob_version(void);

HOB_END_DECLS

#endif
