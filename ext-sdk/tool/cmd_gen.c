/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_gen.c - hob-sdk gen: C from the schemas of ops.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "tool.h"

#include "gen.h"

#include <stdlib.h>
#include <string.h>

/* The file name of PATH, under which the glue includes the header. */
static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static hob_status write_builtin(const struct gen_schema *schema,
                                const struct gen_options *options,
                                hob_error *error)
{
    const struct {
        const char *path;
        void (*write)(struct hob__text *out, const struct gen_schema *schema);
    } outputs[] = {{options->header, gen_header_builtin},
                   {options->table, gen_table},
                   {options->bodies, gen_bodies},
                   {options->infer, gen_infer},
                   {options->markdown, gen_page}};
    hob_status st = HOB_OK;

    for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]) && !st; i++) {
        struct hob__text text = HOB__TEXT_INIT;

        if (!outputs[i].path)
            continue;
        outputs[i].write(&text, schema);
        st = gen_write(outputs[i].path, &text, error);
    }
    return st;
}

static hob_status write_extension(const struct gen_schema *schema,
                                  const struct gen_options *options,
                                  hob_error *error)
{
    struct hob__text text = HOB__TEXT_INIT;
    hob_status st = HOB_OK;

    if (options->header) {
        gen_header_extension(&text, schema);
        st = gen_write(options->header, &text, error);
    }
    if (!st && options->glue) {
        gen_glue(&text, schema,
                 options->header ? base_name(options->header) : NULL);
        st = gen_write(options->glue, &text, error);
    }
    return st;
}

static int generate(const struct gen_options *options)
{
    struct gen_schema schema;
    hob_error error = HOB_ERROR_INIT;
    hob_status st;

    memset(&schema, 0, sizeof(schema));
    schema.is_extension = options->manifest != NULL;
    if (schema.is_extension)
        st = gen_read_extension(&schema, options->manifest, &error);
    else
        st = gen_read_builtin(&schema, options->ops_dir, &error);
    if (!st)
        st = gen_check(&schema, &error);
    if (!st && options->support) {
        struct gen_source *source = NULL;

        st = gen_source_open(&schema, options->support, &source, &error);
        schema.support = source;
    }
    if (!st)
        st = schema.is_extension ? write_extension(&schema, options, &error)
                                 : write_builtin(&schema, options, &error);
    gen_schema_release(&schema);
    return st ? tool_failed(&error) : TOOL_DONE;
}

/* Read --NAME FILE pairs and, for extensions, the manifest. */
static int read_options(int argc, char **argv, bool is_extension,
                        struct gen_options *options)
{
    const struct {
        const char *name;
        const char **value;
        bool extension;
        bool builtin;
    } known[] = {{"--ops-dir", &options->ops_dir, false, true},
                 {"--header", &options->header, true, true},
                 {"--table", &options->table, false, true},
                 {"--bodies", &options->bodies, false, true},
                 {"--infer", &options->infer, false, true},
                 {"--markdown", &options->markdown, false, true},
                 {"--support", &options->support, false, true},
                 {"--glue", &options->glue, true, false}};
    const size_t known_count = sizeof(known) / sizeof(known[0]);

    for (int i = 0; i < argc; i++) {
        size_t k = 0;

        if (argv[i][0] != '-' && is_extension && !options->manifest) {
            options->manifest = argv[i];
            continue;
        }
        while (k < known_count &&
               (strcmp(known[k].name, argv[i]) != 0 ||
                !(is_extension ? known[k].extension : known[k].builtin)))
            k++;
        if (k == known_count)
            return tool_usage_error("unknown argument ", argv[i]);
        if (++i == argc)
            return tool_usage_error("no file after ", argv[i - 1]);
        *known[k].value = argv[i];
    }
    if (is_extension && !options->manifest)
        return tool_usage_error("which manifest?", "");
    if (!is_extension && !options->ops_dir)
        return tool_usage_error("--ops-dir is missing", "");
    return TOOL_DONE;
}

int tool_gen(int argc, char **argv)
{
    struct gen_options options;
    bool is_extension;
    int status;

    memset(&options, 0, sizeof(options));
    if (argc < 1 ||
        (strcmp(argv[0], "builtin") != 0 && strcmp(argv[0], "extension") != 0))
        return tool_usage_error("gen builtin or gen extension?", "");
    is_extension = !strcmp(argv[0], "extension");
    status = read_options(argc - 1, argv + 1, is_extension, &options);
    return status ? status : generate(&options);
}
