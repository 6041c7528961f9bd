/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/ext/capture.h - recordings of work: the interface "capture", version 1,
 * that a backend may offer. The functions of hob/capture.h are made of it.
 *
 * Between begin() and end() what the calling thread asks DEVICE for is written
 * down instead of done: kernels, and copies on the device. What other threads
 * ask for is done as ever. Of the thread that records:
 *
 * - memory that it takes belongs to the recording, also once it was given
 *   back, and is given out again to that recording alone;
 * - reading, uploading and waiting are refused with HOB_ERR_UNSUPPORTED.
 *
 * One thread records on a device at a time; begin() waits for another.
 *
 * Messages are made with host->mem_alloc, as in hob/ext/plugin.h. All functions
 * may be called from several threads at once. The table grows at its end only.
 */
#ifndef HOB_EXT_CAPTURE_H
#define HOB_EXT_CAPTURE_H

#include <hob/host.h>

HOB_BEGIN_DECLS

#define HOB_CAPTURE_INTERFACE "capture"
enum { HOB_CAPTURE_INTERFACE_VERSION = 1 };

/* DEVICE is what device_open returned. The backend has a function copy. */
struct hob_capture_interface {
    uint32_t struct_size;
    uint32_t version;
    hob_status (*begin)(void *device, char **out_message);
    /*
     * End what this thread began. With KEEP *OUT_GRAPH is what was written
     * down; else, and on failure, it is NULL and all of it is dropped. Memory
     * that was taken and not given back is the taker's then, as any other.
     * HOB_ERR_UNSUPPORTED if something was refused or is still taken.
     */
    hob_status (*end)(void *device, int32_t keep, void **out_graph,
                      char **out_message);
    /* Ask for the work of GRAPH, after what was asked for before. */
    hob_status (*replay)(void *device, void *graph, char **out_message);
    /* What was asked for is still done. */
    void (*graph_free)(void *device, void *graph);
};

HOB_END_DECLS

#endif
