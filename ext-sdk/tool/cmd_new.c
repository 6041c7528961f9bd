/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_new.c - hob-sdk new: a project from the templates.
 *
 * The folder is made under another name and renamed when it is whole and the
 * generator has no objection to its manifest. What is there already is never
 * touched.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "tool.h"

#include "gen.h"
#include "manifest_read.h"
#include "paths.h"
#include "template.h"

#include <hob/host.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef HOB_SDKDIR
#define HOB_SDKDIR "/usr/share/hob/sdk"
#endif

enum { TEMPLATE_MAX = 1 << 20 };

/* What is made of which template; names are filled in like texts. */
static const struct project_file {
    const char *template;
    const char *name;
    const char *flag; /* only where this value is not empty; NULL: always */
} project_files[] = {{"Makefile", "Makefile", NULL},
                     {"README.md", "README.md", NULL},
                     {"extension.c", "@OP@.@SUFFIX@", NULL},
                     {"gitignore", ".gitignore", NULL},
                     {"kernel.cube", "@OP@.cube", "CUBE"},
                     {"manifest.json", "@OP@.json", NULL},
                     {"test.c", "test.@SUFFIX@", NULL}};

enum { FILE_COUNT = sizeof(project_files) / sizeof(project_files[0]) };

struct project {
    const struct hob_os_ops *os;
    struct hob__arena arena;
    char *templates;   /* owned: their folder */
    const char *name;  /* "acme.scale", and the folder's */
    const char *aside; /* while it is not whole */
    struct template_value values[20];
    size_t value_count;
    hob_error *error;
};

static hob_status no_memory(const struct project *project)
{
    return hob_error_set(project->error, HOB_ERR_MEMORY, "out of memory");
}

static void set(struct project *project, const char *name, const char *value)
{
    project->values[project->value_count++] =
        (struct template_value){name, value};
}

static char *upper(struct project *project, const char *text)
{
    char *copy = hob__arena_strdup(&project->arena, text);

    for (char *p = copy; p && *p; p++)
        *p = *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p;
    return copy;
}

/* NAME is "namespace.op". */
static hob_status set_names(struct project *project)
{
    const char *dot = strchr(project->name, '.');
    const char *space = dot ? hob__arena_strndup(&project->arena, project->name,
                                                 (size_t)(dot - project->name))
                            : NULL;
    const char *upper_space, *major, *minor;

    if (!dot || !hob__is_word(space) || !hob__is_word(dot + 1) ||
        !hob__is_id(project->name, 2))
        return hob_error_set(
            project->error, HOB_ERR_ARGUMENT,
            "\"%s\" is no name of an extension: a namespace and an op as in "
            "acme.scale, each of a-z 0-9 _ with a letter first, 64 characters "
            "at most",
            project->name);
    upper_space = upper(project, space);
    major = hob__arena_printf(&project->arena, "%d", HOB_ABI_MAJOR);
    minor = hob__arena_printf(&project->arena, "%d", HOB_ABI_MINOR);
    if (!upper_space || !major || !minor)
        return no_memory(project);
    set(project, "NAME", project->name);
    set(project, "NAMESPACE", space);
    set(project, "UPPER_NAMESPACE", upper_space);
    set(project, "OP", dot + 1);
    set(project, "UPPER_OP", upper(project, dot + 1));
    set(project, "ABI_MAJOR", major);
    set(project, "ABI_MINOR", minor);
    return HOB_OK;
}

/* Nothing, or an empty folder. */
static hob_status check_free(const struct project *project)
{
    const struct hob_os_ops *os = project->os;
    struct hob_os_stat stat;
    const char *name = NULL;
    void *dir = NULL;
    bool is_empty = true;
    int code = os->path_stat(os->self, project->name, false, &stat);

    if (code)
        return code == -ENOENT
                   ? HOB_OK
                   : hob__path_fail(project->name, code, project->error);
    if (stat.type == HOB_OS_DIRECTORY)
        code = os->open_dir(os->self, project->name, &dir);
    if (code)
        return hob__path_fail(project->name, code, project->error);
    while (dir && !os->read_dir(os->self, dir, &name) && name)
        is_empty = is_empty && (!strcmp(name, ".") || !strcmp(name, ".."));
    if (dir)
        os->close_dir(os->self, dir);
    if (dir && is_empty)
        return HOB_OK;
    return hob_error_set(project->error, HOB_ERR_STATE,
                         "%s is there already and is %s: nothing was changed",
                         project->name, dir ? "not empty" : "no folder");
}

static hob_status expand(struct project *project, const char *path,
                         const char *text, size_t size, char **out_text)
{
    struct hob__text out = HOB__TEXT_INIT;
    hob_status st = template_expand(path, text, size, project->values,
                                    project->value_count, &out, project->error);

    *out_text = st ? NULL : hob__text_take(&out);
    hob__text_release(&out);
    return st || *out_text ? st : no_memory(project);
}

/* The path of FILE below the folder; the arena's. */
static const char *project_path(struct project *project,
                                const struct project_file *file)
{
    const char *path = NULL;
    char *name = NULL;

    if (!expand(project, file->name, file->name, strlen(file->name), &name))
        path = hob__path_join(&project->arena, project->aside, name);
    free(name);
    return path;
}

/* Whether the project has FILE. */
static bool is_wanted(const struct project *project,
                      const struct project_file *file)
{
    for (size_t i = 0; file->flag && i < project->value_count; i++) {
        if (!strcmp(project->values[i].name, file->flag))
            return *project->values[i].value != '\0';
    }
    return true;
}

static hob_status make_file(struct project *project,
                            const struct project_file *file)
{
    struct hob__text out = HOB__TEXT_INIT;
    struct hob_os_stat stat = {0};
    enum hob__reason reason;
    const char *from =
        hob__path_join(&project->arena, project->templates, file->template);
    const char *to = project_path(project, file);
    char *text = NULL;
    size_t size = 0;
    hob_status st = from && to ? HOB_OK : no_memory(project);

    if (!st)
        st = hob__file_read(project->os, from, TEMPLATE_MAX, &text, &size,
                            &stat, &reason, project->error);
    if (!st)
        st = template_expand(from, text, size, project->values,
                             project->value_count, &out, project->error);
    if (!st)
        st = gen_write(to, &out, project->error);
    hob__text_release(&out);
    free(text);
    return st;
}

/* The generator knows which names cannot stand in C. */
static hob_status check_manifest(struct project *project)
{
    struct gen_schema schema;
    const char *path = NULL;
    hob_status st;

    for (int i = 0; i < FILE_COUNT; i++) {
        if (!strcmp(project_files[i].template, "manifest.json"))
            path = project_path(project, &project_files[i]);
    }
    if (!path)
        return no_memory(project);
    memset(&schema, 0, sizeof(schema));
    schema.is_extension = true;
    st = gen_read_extension(&schema, path, project->error);
    if (!st)
        st = gen_check(&schema, project->error);
    gen_schema_release(&schema);
    return st;
}

static void remove_aside(struct project *project)
{
    const struct hob_os_ops *os = project->os;

    for (int i = 0; i < FILE_COUNT; i++) {
        const char *path = project_path(project, &project_files[i]);

        if (path)
            (void)os->remove(os->self, path);
    }
    (void)os->remove(os->self, project->aside);
}

static hob_status make_folder(struct project *project)
{
    const struct hob_os_ops *os = project->os;
    hob_status st = HOB_OK;
    int code;

    project->aside = hob__arena_printf(&project->arena, "%s.new-%ld",
                                       project->name, (long)getpid());
    if (!project->aside)
        return no_memory(project);
    code = os->make_dir(os->self, project->aside, 0777);
    if (code)
        return hob__path_fail(project->aside, code, project->error);
    for (int i = 0; i < FILE_COUNT && !st; i++) {
        if (is_wanted(project, &project_files[i]))
            st = make_file(project, &project_files[i]);
    }
    if (!st)
        st = check_manifest(project);
    if (!st) {
        /* Takes the place of an empty folder, and of nothing else. */
        code = os->rename(os->self, project->aside, project->name);
        st =
            code ? hob__path_fail(project->name, code, project->error) : HOB_OK;
    }
    if (st)
        remove_aside(project);
    return st;
}

static int make_project(struct project *project)
{
    static const char *const beside[] = {"../share/hob/sdk/template", NULL};
    hob_error error = HOB_ERROR_INIT;
    hob_status st;

    project->error = &error;
    project->os = hob__os();
    st = set_names(project);
    if (!st)
        st = check_free(project);
    if (!st && !project->templates)
        project->templates = tool_find(beside, HOB_SDKDIR "/template");
    if (!st && !project->templates)
        st = hob_error_set(&error, HOB_ERR_NOT_FOUND,
                           "the templates are not installed: neither in "
                           "%s beside this program, nor %s",
                           beside[0], HOB_SDKDIR "/template");
    if (!st)
        st = make_folder(project);
    if (!st && printf("made %s: cd %s && make check\n", project->name,
                      project->name) < 0)
        st = hob_error_set(&error, HOB_ERR_IO, "cannot write the output");
    free(project->templates);
    hob__arena_release(&project->arena);
    return st ? tool_failed(&error) : TOOL_DONE;
}

int tool_new(int argc, char **argv)
{
    static const struct {
        const char *option;
        const char *name;
    } flags[] = {{"--with-kernel", "KERNEL"},
                 {"--with-cube-kernel", "CUBE"},
                 {"--with-backward", "BACKWARD"},
                 {"--with-types", "TYPES"},
                 {"--cxx", "CXX"}};
    enum { FLAG_COUNT = sizeof(flags) / sizeof(flags[0]) };
    const char *given[FLAG_COUNT] = {"", "", "", "", ""};
    struct project project;

    memset(&project, 0, sizeof(project));
    for (int i = 0; i < argc; i++) {
        int k = 0;

        while (k < FLAG_COUNT && strcmp(flags[k].option, argv[i]) != 0)
            k++;
        if (k < FLAG_COUNT)
            given[k] = "1";
        else if (argv[i][0] == '-' || project.name)
            return tool_usage_error("unknown argument ", argv[i]);
        else
            project.name = argv[i];
    }
    if (!project.name)
        return tool_usage_error("new: which name? As in acme.scale", "");
    for (int k = 0; k < FLAG_COUNT; k++)
        set(&project, flags[k].name, given[k]);
    /* Any kernel: templates have no "or". */
    set(&project, "IMPLEMENTED",
        *given[0] || *given[1] || *given[2] ? "1" : "");
    set(&project, "COMMA_KERNEL", *given[1] || *given[2] ? "," : "");
    set(&project, "COMMA_CUBE", *given[2] ? "," : "");
    set(&project, "SUFFIX", *given[FLAG_COUNT - 1] ? "cpp" : "c");
    return make_project(&project);
}
