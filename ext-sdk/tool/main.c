/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - hob-sdk: the tool of those who write plugins and ops.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "output_end.h"
#include "tool.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0.1.0"
#endif

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    bool has_own_help;
} commands[] = {{"new", tool_new, false},
                {"gen", tool_gen, false},
                {"check", tool_check, true},
                {"pack", tool_pack, false}};

static const char usage_text[] =
    "usage: hob-sdk new NAME [--with-kernel] [--with-cube-kernel]\n"
    "               [--with-backward] [--with-types] [--cxx]\n"
    "       hob-sdk gen extension MANIFEST [--header FILE] [--glue FILE]\n"
    "       hob-sdk gen builtin --ops-dir DIR [--header FILE] [--table FILE]\n"
    "               [--bodies FILE] [--infer FILE]\n"
    "               [--markdown FILE [--support FILE]]\n"
    "       hob-sdk check ARGUMENTS\n"
    "       hob-sdk pack [FOLDER | MANIFEST] [-o FILE]\n"
    "       hob-sdk --help | --version\n"
    "\n"
    "  new    a project for the extension NAME, as in acme.scale, that\n"
    "         builds, tests and installs as it is\n"
    "  gen    C from the manifest of an extension, or from the schemas of\n"
    "         the built-in ops; without outputs it only checks\n"
    "  check  whether a plugin keeps its promises; see hob-sdk check --help\n"
    "  pack   the plugin in FOLDER as one file for hob install\n"
    "\n"
    "Errors are FILE:LINE:COLUMN: POINTER: message. See man hob-sdk.\n"
    "Exit status: 0 done, 1 an error in the input, 2 a wrong command line.\n";

static int help(void)
{
    (void)!fputs(usage_text, stdout);
    return TOOL_DONE;
}

static int run(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "--help"))
        return help();
    if (argc == 2 && !strcmp(argv[1], "--version")) {
        (void)!puts("hob-sdk " PACKAGE_VERSION);
        return TOOL_DONE;
    }
    if (argc < 2)
        return tool_usage_error("no command", "");
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(commands[i].name, argv[1]) != 0)
            continue;
        if (argc == 3 && !strcmp(argv[2], "--help") &&
            !commands[i].has_own_help)
            return help();
        return commands[i].run(argc - 2, argv + 2);
    }
    return tool_usage_error("unknown command ", argv[1]);
}

int main(int argc, char **argv)
{
    return hob__output_end("hob-sdk", run(argc, argv), TOOL_BAD_INPUT);
}
