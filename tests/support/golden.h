/* SPDX-License-Identifier: Apache-2.0 */
/*
 * golden.h - texts that people read are files, tests/golden/<name>.txt.
 */
#ifndef GOLDEN_H
#define GOLDEN_H

/* TEXT is what the file of NAME has. HOB_TEST_UPDATE=1 writes it anew. */
void golden_compare(const char *name, const char *text);

#endif
