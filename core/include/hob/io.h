/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/io.h - files and exchange with other libraries.
 *
 * Writing is atomic: into a temporary file beside the target, synced, then
 * renamed. A failure leaves what was there before and nothing else.
 */
#ifndef HOB_IO_H
#define HOB_IO_H

#include <hob/host.h>

HOB_BEGIN_DECLS

/* ---- NPY (NumPy format versions 1.0 to 3.0) ---- */

/* Read the array in file PATH to DEVICE. Both byte orders and Fortran order
 * are accepted; structured and object arrays are refused. */
HOB_API HOB_MUST_CHECK hob_status hob_npy_load(hob_scope *scope,
                                               hob_device *device,
                                               const char *path,
                                               hob_tensor **out_tensor,
                                               hob_error *error);
/* bf16 has no NPY dtype and is refused with the cast to use. */
HOB_API HOB_MUST_CHECK hob_status hob_npy_save(const char *path,
                                               hob_tensor *tensor,
                                               hob_error *error);

/* ---- safetensors ---- */

typedef struct hob_safetensors hob_safetensors;

/*
 * Open the file PATH: map it and check its header (at most 100 MB, offsets
 * without gaps or overlaps, sizes that fit dtypes and shapes). The caller
 * closes *OUT_FILE; tensors read from it do not need it.
 */
HOB_API HOB_MUST_CHECK hob_status hob_safetensors_open(
    const char *path, hob_safetensors **out_file, hob_error *error);
HOB_API void hob_safetensors_close(hob_safetensors *file); /* accepts NULL */

/* The number of tensors, and the name of one (in file order; borrowed). */
HOB_API uint32_t hob_safetensors_count(const hob_safetensors *file);
HOB_API const char *hob_safetensors_name(const hob_safetensors *file,
                                         uint32_t index);
/* The value of KEY in __metadata__; NULL if there is none. Borrowed. */
HOB_API const char *hob_safetensors_metadata(const hob_safetensors *file,
                                             const char *key);
/* Fails with HOB_ERR_NOT_FOUND if there is no NAME. */
HOB_API HOB_MUST_CHECK hob_status hob_safetensors_read(
    hob_safetensors *file, hob_scope *scope, hob_device *device,
    const char *name, hob_tensor **out_tensor, hob_error *error);

struct hob_named_tensor {
    const char *name;
    hob_tensor *tensor;
};

/* METADATA holds METADATA_COUNT pairs of key and value; may be NULL. */
HOB_API HOB_MUST_CHECK hob_status hob_safetensors_save(
    const char *path, const struct hob_named_tensor *tensors, uint32_t count,
    const char *const *metadata, uint32_t metadata_count, hob_error *error);

/* ---- DLPack 1.x ---- */

struct hob_dlpack_managed; /* DLManagedTensorVersioned, by layout */

/*
 * Export TENSOR without a copy where its memory allows (host memory, no
 * negative strides), else as a copy. Lazy tensors are evaluated; tracked ones
 * are refused. The consumer calls the deleter, on any thread.
 */
HOB_API HOB_MUST_CHECK hob_status
hob_dlpack_export(hob_tensor *tensor, struct hob_dlpack_managed **out_managed,
                  hob_error *error);

/*
 * Take over MANAGED as a tensor on DEVICE: without a copy where DEVICE
 * computes in host memory, and its deleter then runs with the last reference.
 * On failure MANAGED stays the caller's.
 */
HOB_API HOB_MUST_CHECK hob_status hob_dlpack_import(
    hob_scope *scope, hob_device *device, struct hob_dlpack_managed *managed,
    hob_tensor **out_tensor, hob_error *error);

HOB_END_DECLS

#endif
