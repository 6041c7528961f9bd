/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - hob: what is installed, what it can do, and small programs.
 */
#include "cmd.h"
#include "output_end.h"

#include <stdio.h>
#include <string.h>

static const struct cmd commands[] = {
    {"doctor", "[--json]",
     "try all that is found and say what is wrong and what to do", cmd_doctor},
    {"plugins", "[--all] [--json]",
     "list the plugins that were found, and those refused with the reason",
     cmd_plugins},
    {"why", "PLUGIN [--json]",
     "tell what became of one plugin and where it was searched", cmd_why},
    {"devices", "[--json]", "list the devices of all backends", cmd_devices},
    {"ops", "[NAME] [--json [--support]]",
     "list the operations, or describe one", cmd_ops},
    {"config", "[--json]", "show the configuration and where it came from",
     cmd_config},
    {"eval",
     "PROGRAM.json [--device D]... [--names MAP.json] [--tolerance REL] "
     "[--layout L] [--stats] [--explain] [--json]\n"
     "   or: hob eval --bisect PROGRAM.json --device A --device B "
     "[--names MAP.json] [--tolerance REL] [--layout L] [--json]\n"
     "   or: hob eval --cases FILE.jsonl [--names MAP.json] [--device D] "
     "[--only TEXT] [--layout L] [--json]",
     "run a program, compare devices, or run a file of cases", cmd_eval},
    {"install", "FOLDER | MANIFEST | PACKAGE [--user | --system] [--json]",
     "check a plugin and install it", cmd_install},
    {"remove", "ID [--user | --system] [--json]", "remove an installed plugin",
     cmd_remove},
    {"enable", "ID [--user | --system] [--json]",
     "switch a plugin on that was disabled", cmd_enable},
    {"disable", "ID [--user | --system] [--json]",
     "switch a plugin off, installed as it is", cmd_disable}};

enum { COMMAND_COUNT = sizeof(commands) / sizeof(commands[0]) };

static int help(FILE *stream, int code)
{
    fprintf(stream, "usage: hob COMMAND [ARGUMENTS]\n\n");
    for (int i = 0; i < COMMAND_COUNT; i++)
        fprintf(stream, "  %-8s %s\n", commands[i].name, commands[i].help);
    fprintf(stream, "\nEvery command takes --json and --help. See man hob.\n"
                    "Exit codes: 0 done, 1 failed, 2 wrong call.\n");
    return code;
}

static int run(int argc, char **argv)
{
    if (argc < 2)
        return help(stderr, EXIT_USAGE);
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help"))
        return help(stdout, EXIT_DONE);
    if (!strcmp(argv[1], "--version")) {
        printf("hob %s\n", hob_version());
        return EXIT_DONE;
    }
    for (int i = 0; i < COMMAND_COUNT; i++) {
        const struct cmd *cmd = &commands[i];
        int rest = argc - 2;

        if (strcmp(cmd->name, argv[1]))
            continue;
        if (cmd_flag(&rest, argv + 2, "--help")) {
            printf("hob %s - %s\nusage: hob %s %s\n", cmd->name, cmd->help,
                   cmd->name, cmd->usage);
            return EXIT_DONE;
        }
        return cmd->run(cmd, rest, argv + 2);
    }
    fprintf(stderr, "hob: there is no command \"%s\"\n\n", argv[1]);
    return help(stderr, EXIT_USAGE);
}

int main(int argc, char **argv)
{
    return hob__output_end("hob", run(argc, argv), EXIT_FAILED);
}
