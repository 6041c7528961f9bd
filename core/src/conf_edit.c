/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_edit.c - changing one value in the text of a config file.
 *
 * The reader of JSON knows where each value stands, so there are two edits: a
 * value is replaced, or a member is inserted behind the last of its object,
 * set off as that one is.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "conf_edit.h"

#include "json.h"

#include <string.h>

/* What is put in place of LENGTH bytes at OFFSET. */
struct edit {
    size_t offset;
    size_t length;
    struct hob__text text;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Begin to insert a member into OBJECT, up to where its key comes. */
static void begin_member(struct edit *edit, const struct hob__json_doc *doc,
                         const struct hob__json_value *object, const char *text)
{
    const struct hob__json_value *last = NULL, *next;
    size_t gap;

    for (next = hob__json_first(doc, object); next;
         next = hob__json_next(doc, next))
        last = next;
    if (!last) {
        edit->offset = (size_t)object->offset + 1;
        return;
    }
    edit->offset = (size_t)last->offset + last->length;
    for (gap = last->key_offset; is_blank(text[gap - 1]);)
        gap--;
    hob__text_puts(&edit->text, ",");
    if (gap == last->key_offset)
        hob__text_puts(&edit->text, " ");
    hob__text_append(&edit->text, text + gap, last->key_offset - gap);
}

static void make_edit(struct edit *edit, const struct hob__json_doc *doc,
                      const char *text, const char *id, bool enabled)
{
    const struct hob__json_value *root = hob__json_root(doc);
    const struct hob__json_value *plugins =
        hob__json_member(doc, root, "plugins");
    const struct hob__json_value *plugin = hob__json_member(doc, plugins, id);
    const struct hob__json_value *value =
        hob__json_member(doc, plugin, "enabled");
    const char *word = enabled ? "true" : "false";

    if (value) {
        edit->offset = value->offset;
        edit->length = value->length;
        hob__text_puts(&edit->text, word);
        return;
    }
    begin_member(edit, doc, plugin ? plugin : plugins ? plugins : root, text);
    if (!plugins)
        hob__text_puts(&edit->text, "\"plugins\": {");
    if (!plugin) {
        hob__text_json(&edit->text, id);
        hob__text_puts(&edit->text, ": {");
    }
    hob__text_printf(&edit->text, "\"enabled\": %s", word);
    if (!plugin)
        hob__text_puts(&edit->text, "}");
    if (!plugins)
        hob__text_puts(&edit->text, "}");
}

hob_status hob__conf_edit_enabled(const char *path, const char *text,
                                  size_t size, const char *id, bool enabled,
                                  struct hob__text *out, hob_error *error)
{
    static const struct hob__json_limits limits = HOB__JSON_MANIFEST_LIMITS;
    static const char empty[] = "{\n}\n";
    struct edit edit = {0, 0, HOB__TEXT_INIT};
    struct hob__json_doc *doc = NULL;
    hob_status st;

    if (!text) {
        text = empty;
        size = sizeof(empty) - 1;
        hob__text_puts(&edit.text, "\n  ");
    }
    st = hob__json_parse(path, text, size, &limits, &doc, NULL, error);
    if (!st) {
        make_edit(&edit, doc, text, id, enabled);
        hob__text_append(out, text, edit.offset);
        hob__text_append(out, edit.text.data ? edit.text.data : "",
                         edit.text.length);
        hob__text_append(out, text + edit.offset + edit.length,
                         size - edit.offset - edit.length);
        if (edit.text.failed || out->failed)
            st =
                hob_error_set(error, HOB_ERR_MEMORY, "%s: out of memory", path);
    }
    hob__text_release(&edit.text);
    hob__json_free(doc);
    if (st == HOB_ERR_FORMAT && error)
        error->status = HOB_ERR_CONFIG;
    return st == HOB_ERR_FORMAT ? HOB_ERR_CONFIG : st;
}
