/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of everything that crosses the plugin ABI, compared with
 * tests/golden/abi.txt. A change of that file is a change of the ABI: while
 * the major is 0 it raises the minor. HOB_TEST_UPDATE=1 writes it anew.
 */
#include "../support/hob_check.h"

#include <hob/ext/autodiff.h>
#include <hob/ext/flex.h>
#include <hob/ext/plugin.h>

#include <stddef.h>
#include <stdio.h>

_Static_assert(sizeof(hob_value) == 16, "a value is 16 bytes");
_Static_assert(sizeof(struct hob_meta) == 72, "fixed within a major");
_Static_assert(sizeof(void *) != 8 || sizeof(struct hob_view) == 152,
               "fixed within a major");
_Static_assert(offsetof(struct hob_view, data) == 0, "first for kernels");
_Static_assert(offsetof(struct hob_host, struct_size) == 0, "tables begin so");
_Static_assert(offsetof(struct hob_backend, struct_size) == 0, "likewise");
_Static_assert(offsetof(struct hob_decorator, struct_size) == 0, "likewise");
_Static_assert(offsetof(struct hob_extension, struct_size) == 0, "likewise");
_Static_assert(offsetof(struct hob_plugin, magic) == 0, "before all else");

/* clang-format off: one member a line, in the order of the headers. */
#define MEMBERS(MEMBER)                                                        \
    MEMBER(hob_meta, dtype)                                                    \
    MEMBER(hob_meta, rank)                                                     \
    MEMBER(hob_meta, reserved0)                                                \
    MEMBER(hob_meta, scheme)                                                   \
    MEMBER(hob_meta, shape)                                                    \
    MEMBER(hob_value, tag)                                                     \
    MEMBER(hob_value, flags)                                                   \
    MEMBER(hob_value, reserved)                                                \
    MEMBER(hob_value, count)                                                   \
    MEMBER(hob_value, u)                                                       \
    MEMBER(hob_view, data)                                                     \
    MEMBER(hob_view, storage)                                                  \
    MEMBER(hob_view, dtype)                                                    \
    MEMBER(hob_view, rank)                                                     \
    MEMBER(hob_view, flags)                                                    \
    MEMBER(hob_view, scheme)                                                   \
    MEMBER(hob_view, shape)                                                    \
    MEMBER(hob_view, strides)                                                  \
    MEMBER(hob_host, struct_size)                                              \
    MEMBER(hob_host, abi_major)                                                \
    MEMBER(hob_host, abi_minor)                                                \
    MEMBER(hob_host, version)                                                  \
    MEMBER(hob_host, call1)                                                    \
    MEMBER(hob_host, calln)                                                    \
    MEMBER(hob_host, callv)                                                    \
    MEMBER(hob_host, op_id)                                                    \
    MEMBER(hob_host, scope_enter)                                              \
    MEMBER(hob_host, scope_leave)                                              \
    MEMBER(hob_host, scope_status)                                             \
    MEMBER(hob_host, scope_fail)                                               \
    MEMBER(hob_host, keep)                                                     \
    MEMBER(hob_host, move)                                                     \
    MEMBER(hob_host, tensor_ref)                                               \
    MEMBER(hob_host, tensor_unref)                                             \
    MEMBER(hob_host, tensor_device)                                            \
    MEMBER(hob_host, tensor_is_error)                                          \
    MEMBER(hob_host, alias)                                                    \
    MEMBER(hob_host, lift)                                                     \
    MEMBER(hob_host, state)                                                    \
    MEMBER(hob_host, set_state)                                                \
    MEMBER(hob_host, next)                                                     \
    MEMBER(hob_host, body)                                                     \
    MEMBER(hob_host, fail)                                                     \
    MEMBER(hob_host, result)                                                   \
    MEMBER(hob_host, parallel_for)                                             \
    MEMBER(hob_host, thread_count)                                             \
    MEMBER(hob_host, mem_alloc)                                                \
    MEMBER(hob_host, mem_free)                                                 \
    MEMBER(hob_host, log_write)                                                \
    MEMBER(hob_host, interface)                                                \
    MEMBER(hob_host, process_shared)                                           \
    MEMBER(hob_host, runtime)                                                  \
    MEMBER(hob_call, host)                                                     \
    MEMBER(hob_call, op)                                                       \
    MEMBER(hob_call, flags)                                                    \
    MEMBER(hob_call, scope)                                                    \
    MEMBER(hob_call, device)                                                   \
    MEMBER(hob_call, level)                                                    \
    MEMBER(hob_call, arg_count)                                                \
    MEMBER(hob_call, ret_count)                                                \
    MEMBER(hob_call, args)                                                     \
    MEMBER(hob_call, rets)                                                     \
    MEMBER(hob_call, metas)                                                    \
    MEMBER(hob_call, plains)                                                   \
    MEMBER(hob_call, plain_count)                                              \
    MEMBER(hob_call, reserved)                                                 \
    MEMBER(hob_call, stream)                                                   \
    MEMBER(hob_call, workspace)                                                \
    MEMBER(hob_call, prepared)                                                 \
    MEMBER(hob_call, op_name)                                                  \
    MEMBER(hob_call, core)                                                     \
    MEMBER(hob_prepare, struct_size)                                           \
    MEMBER(hob_prepare, reserved)                                              \
    MEMBER(hob_prepare, workspace_bytes)                                       \
    MEMBER(hob_prepare, prepared)                                              \
    MEMBER(hob_prepare, release)                                               \
    MEMBER(hob_entry, op)                                                      \
    MEMBER(hob_entry, signature)                                               \
    MEMBER(hob_entry, dtypes)                                                  \
    MEMBER(hob_entry, dtype_count)                                             \
    MEMBER(hob_entry, flags)                                                   \
    MEMBER(hob_entry, prepare)                                                 \
    MEMBER(hob_entry, execute)                                                 \
    MEMBER(hob_device_info, name)                                              \
    MEMBER(hob_device_info, memory_bytes)                                      \
    MEMBER(hob_device_info, reserved)                                          \
    MEMBER(hob_backend, struct_size)                                           \
    MEMBER(hob_backend, entry_count)                                           \
    MEMBER(hob_backend, entries)                                               \
    MEMBER(hob_backend, device_count)                                          \
    MEMBER(hob_backend, device_info)                                           \
    MEMBER(hob_backend, device_open)                                           \
    MEMBER(hob_backend, device_close)                                          \
    MEMBER(hob_backend, alloc)                                                 \
    MEMBER(hob_backend, free)                                                  \
    MEMBER(hob_backend, upload)                                                \
    MEMBER(hob_backend, download)                                              \
    MEMBER(hob_backend, sync)                                                  \
    MEMBER(hob_backend, interface)                                             \
    MEMBER(hob_backend, flags)                                                 \
    MEMBER(hob_backend, reserved)                                              \
    MEMBER(hob_decorator, struct_size)                                         \
    MEMBER(hob_decorator, reserved)                                            \
    MEMBER(hob_decorator, layer_open)                                          \
    MEMBER(hob_decorator, layer_close)                                         \
    MEMBER(hob_decorator, call)                                                \
    MEMBER(hob_decorator, state_release)                                       \
    MEMBER(hob_decorator, state_retain)                                        \
    MEMBER(hob_decorator, interface)                                           \
    MEMBER(hob_grad_call, host)                                                \
    MEMBER(hob_grad_call, op_name)                                             \
    MEMBER(hob_grad_call, args)                                                \
    MEMBER(hob_grad_call, arg_count)                                           \
    MEMBER(hob_grad_call, input_count)                                         \
    MEMBER(hob_grad_call, ret_count)                                           \
    MEMBER(hob_grad_call, plain_count)                                         \
    MEMBER(hob_grad_call, plains)                                              \
    MEMBER(hob_grad_call, inputs)                                              \
    MEMBER(hob_grad_call, input_metas)                                         \
    MEMBER(hob_grad_call, rets)                                                \
    MEMBER(hob_grad_call, ret_metas)                                           \
    MEMBER(hob_grad_call, grads)                                               \
    MEMBER(hob_grad_call, needs_grad)                                          \
    MEMBER(hob_grad_call, out_grads)                                           \
    MEMBER(hob_backward, struct_size)                                          \
    MEMBER(hob_backward, flags)                                                \
    MEMBER(hob_backward, save_args)                                            \
    MEMBER(hob_backward, save_rets)                                            \
    MEMBER(hob_backward, save_if)                                              \
    MEMBER(hob_backward, backward)                                             \
    MEMBER(hob_op_impl, selector)                                              \
    MEMBER(hob_op_impl, entry)                                                 \
    MEMBER(hob_op_impl, backward)                                              \
    MEMBER(hob_op_impl, layer)                                                 \
    MEMBER(hob_op_impl, reserved)                                              \
    MEMBER(hob_extension_op, name)                                             \
    MEMBER(hob_extension_op, signature)                                        \
    MEMBER(hob_extension_op, infer)                                            \
    MEMBER(hob_extension_op, body)                                             \
    MEMBER(hob_extension_op, impls)                                            \
    MEMBER(hob_extension_op, impl_count)                                       \
    MEMBER(hob_extension_op, consumes)                                         \
    MEMBER(hob_extension_op, aliases)                                          \
    MEMBER(hob_extension_op, alias_count)                                      \
    MEMBER(hob_extension_op, reserved)                                         \
    MEMBER(hob_extension, struct_size)                                         \
    MEMBER(hob_extension, op_count)                                            \
    MEMBER(hob_extension, ops)                                                 \
    MEMBER(hob_extension, implements)                                          \
    MEMBER(hob_extension, implements_count)                                    \
    MEMBER(hob_extension, reserved)                                            \
    MEMBER(hob_plugin_part, struct_size)                                       \
    MEMBER(hob_plugin_part, flags)                                             \
    MEMBER(hob_plugin_part, name)                                              \
    MEMBER(hob_plugin_part, next)                                              \
    MEMBER(hob_plugin, magic)                                                  \
    MEMBER(hob_plugin, struct_size)                                            \
    MEMBER(hob_plugin, abi_major)                                              \
    MEMBER(hob_plugin, abi_minor_built)                                        \
    MEMBER(hob_plugin, abi_minor_required)                                     \
    MEMBER(hob_plugin, reserved0)                                              \
    MEMBER(hob_plugin, sanitizers)                                             \
    MEMBER(hob_plugin, id)                                                     \
    MEMBER(hob_plugin, version)                                                \
    MEMBER(hob_plugin, build)                                                  \
    MEMBER(hob_plugin, open)                                                   \
    MEMBER(hob_plugin, close)                                                  \
    MEMBER(hob_plugin, after_fork_child)                                       \
    MEMBER(hob_plugin, backend)                                                \
    MEMBER(hob_plugin, decorator)                                              \
    MEMBER(hob_plugin, extension)                                              \
    MEMBER(hob_plugin, parts)                                                  \
    MEMBER(hob_plugin, reserved1)                                              \
    MEMBER(hob_autodiff_interface, struct_size)                                \
    MEMBER(hob_autodiff_interface, reserved)                                   \
    MEMBER(hob_autodiff_interface, require_grad)                               \
    MEMBER(hob_autodiff_interface, is_tracked)                                 \
    MEMBER(hob_autodiff_interface, detach)                                     \
    MEMBER(hob_autodiff_interface, inner)                                      \
    MEMBER(hob_autodiff_interface, backward)                                   \
    MEMBER(hob_autodiff_interface, grad)                                       \
    MEMBER(hob_autodiff_interface, grads_free)                                 \
    MEMBER(flex_gemm, struct_size)                                             \
    MEMBER(flex_gemm, dtype)                                                   \
    MEMBER(flex_gemm, k)                                                       \
    MEMBER(flex_gemm, a)                                                       \
    MEMBER(flex_gemm, a_column)                                                \
    MEMBER(flex_gemm, b)                                                       \
    MEMBER(flex_gemm, b_column)                                                \
    MEMBER(flex_gemm, c)                                                       \
    MEMBER(flex_gemm, ldc)                                                     \
    MEMBER(flex_gemm, alpha)                                                   \
    MEMBER(flex_gemm, beta)                                                    \
    MEMBER(flex_gemm, bias)                                                    \
    MEMBER(flex_gemm, relu)                                                    \
    MEMBER(flex_gemm, reserved)                                                \
    MEMBER(flex_gemm, epilogue)                                                \
    MEMBER(flex_gemm, epilogue_context)                                        \
    MEMBER(flex_compute, struct_size)                                          \
    MEMBER(flex_compute, version)                                              \
    MEMBER(flex_compute, gemm)                                                 \
    MEMBER(flex_compute, scratch_take)                                         \
    MEMBER(flex_compute, scratch_give)                                         \
    MEMBER(flex_compute, isa)
/* clang-format on */

static const struct member {
    const char *type;
    const char *name;
    size_t offset;
    size_t size;
} members[] = {
#define MEMBER(type, name)                                                     \
    {#type, #name, offsetof(struct type, name),                                \
     sizeof(((struct type *)NULL)->name)},
    MEMBERS(MEMBER)
#undef MEMBER
};

static char *dump(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    ck_assert_ptr_nonnull(stream);
    fprintf(stream, "ABI %d.%d\n", HOB_ABI_MAJOR, HOB_ABI_MINOR);
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        fprintf(stream, "%s.%s %zu %zu\n", members[i].type, members[i].name,
                members[i].offset, members[i].size);
    fclose(stream);
    return text;
}

START_TEST(test_abi_is_as_recorded)
{
    const char *root = getenv("srcdir");
    char *is = dump();
    char path[4096];
    char want[65536];
    size_t size;
    FILE *file;

    snprintf(path, sizeof(path), "%s/golden/abi.txt", root ? root : ".");
    if (getenv("HOB_TEST_UPDATE")) {
        file = fopen(path, "w");
        ck_assert_ptr_nonnull(file);
        fputs(is, file);
        fclose(file);
    }
    file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s is missing", path);
    size = fread(want, 1, sizeof(want) - 1, file);
    fclose(file);
    want[size] = '\0';
    ck_assert_str_eq(is, want);
    free(is);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("abi");
    TCase *tc = tcase_create("abi");

    if (sizeof(void *) != 8) {
        printf("skipped: the record is of 64-bit machines\n");
        return 77;
    }
    tcase_add_test(tc, test_abi_is_as_recorded);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
