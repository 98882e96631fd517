/* The headers of HDF5 objects.
 *
 * An object is a list of messages: what a group has (a table of names, or links), what an array is
 * (type, shape, where its bytes are), attributes, and where more messages are. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "bytes/hdf5_parts.h"

enum { FILTER_DEFLATE = 1 };

enum message {
    MESSAGE_SPACE = 1,
    MESSAGE_LINK_INFO = 2,
    MESSAGE_TYPE = 3,
    MESSAGE_LINK = 6,
    MESSAGE_LAYOUT = 8,
    MESSAGE_FILTERS = 11,
    MESSAGE_ATTRIBUTE = 12,
    MESSAGE_MORE = 16,
    MESSAGE_TABLE = 17,
    MESSAGE_ATTRIBUTE_INFO = 21,
    SHARED = 2 /* flag: the message is elsewhere */
};

enum cm_status cm_hdf5_unsupported(const struct cm_hdf5_facts *p, const char *what)
{
    return cm_fail(p->h->err, CM_UNSUPPORTED, "'%.*s' %s, which is not read",
                   CM_STR_FMT(p->object->path), what);
}

/* ---- messages ---- */

static enum cm_status read_layout(struct cm_hdf5_facts *p, struct cm_hdf5_cursor *c)
{
    const uint64_t version = cm_hdf5_get(c, 1);

    p->has_layout = true;
    if (version == 3 || version == 4) {
        p->layout = (unsigned)cm_hdf5_get(c, 1);
        if (p->layout == 0)
            p->inside = cm_hdf5_take(c, cm_hdf5_get(c, 2));
        else if (p->layout == 1) {
            p->address = cm_hdf5_get(c, 8);
            p->size = cm_hdf5_get(c, 8);
        } else if (p->layout == 2 && version == 3) {
            p->n_chunk = (unsigned)cm_hdf5_get(c, 1);
            p->tree = cm_hdf5_get(c, 8);
        } else
            return cm_hdf5_unsupported(p, "is stored in chunks of a newer kind");
    } else if (version == 1 || version == 2) {
        p->n_chunk = (unsigned)cm_hdf5_get(c, 1);
        p->layout = (unsigned)cm_hdf5_get(c, 1);
        cm_hdf5_get(c, 5);
        if (p->layout)
            p->address = p->tree = cm_hdf5_get(c, 8);
    } else
        return cm_hdf5_unsupported(p, "is laid out in an unknown way");
    if (p->n_chunk > CM_MAX_RANK + 1)
        return cm_hdf5_broken(p->h, "an array has too many dimensions");
    for (unsigned i = 0; i < p->n_chunk; i++)
        p->chunk[i] = cm_hdf5_get(c, 4);
    if (version < 3 && p->layout == 0)
        p->inside = cm_hdf5_take(c, cm_hdf5_get(c, 4));
    if (version < 3 && p->layout == 1)
        p->size = CM_HDF5_NONE; /* what the shape needs */
    return c->cut ? cm_hdf5_broken(p->h, "an array's layout is cut") : CM_OK;
}

static enum cm_status read_filters(struct cm_hdf5_facts *p, struct cm_hdf5_cursor *c)
{
    const uint64_t version = cm_hdf5_get(c, 1), count = cm_hdf5_get(c, 1);

    if (version == 1)
        cm_hdf5_get(c, 6);
    if (count == 0)
        return CM_OK;
    const uint64_t filter = cm_hdf5_get(c, 2);
    if (count != 1 || filter != FILTER_DEFLATE)
        return cm_hdf5_unsupported(p, "is packed by other filters than deflate");
    p->is_deflated = true;
    return CM_OK;
}

static struct cm_str padded(struct cm_hdf5_cursor *c, uint64_t size, uint64_t version)
{
    const struct cm_str out = cm_hdf5_take(c, size);

    if (version == 1)
        cm_hdf5_take(c, (8 - size % 8) % 8);
    return out;
}

struct cm_hdf5_cursor cm_hdf5_over(struct cm_str bytes)
{
    const char *at = bytes.data ? bytes.data : "";

    return (struct cm_hdf5_cursor){at, at + bytes.size, false};
}

static enum cm_status read_attribute(struct cm_hdf5_facts *p, struct cm_hdf5_cursor *c)
{
    const uint64_t version = cm_hdf5_get(c, 1);
    const uint64_t flags = cm_hdf5_get(c, 1);
    const uint64_t name_size = cm_hdf5_get(c, 2), type_size = cm_hdf5_get(c, 2);
    const uint64_t space_size = cm_hdf5_get(c, 2);
    struct cm_hdf5_type type;
    struct cm_shape shape;

    if (version < 1 || version > 3)
        return cm_hdf5_broken(p->h, "an attribute has an unknown version");
    if (version == 3)
        cm_hdf5_get(c, 1);
    struct cm_str name = padded(c, name_size, version);
    struct cm_hdf5_cursor at = cm_hdf5_over(padded(c, type_size, version));
    struct cm_hdf5_cursor space = cm_hdf5_over(padded(c, space_size, version));
    if (c->cut)
        return cm_hdf5_broken(p->h, "an attribute is cut");
    while (name.size && name.data[name.size - 1] == 0)
        name.size--;
    cm_hdf5_read_type(&at, &type);
    struct cm_hdf5_attribute *attribute = CM_PUSH(p->h->arena, &p->object->attributes);
    *attribute = (struct cm_hdf5_attribute){.name = name, .value = &cm_item_none};
    if ((version > 1 && flags & 3) || at.cut || !cm_hdf5_read_space(&space, &shape))
        return CM_OK; /* shared, or empty: a value that is not read */
    return cm_hdf5_value(p->h, &type, &shape, (struct cm_str){c->at, (size_t)(c->end - c->at)},
                         &attribute->value, &attribute->written);
}

static enum cm_status read_link(struct cm_hdf5_facts *p, struct cm_hdf5_cursor *c)
{
    const uint64_t version = cm_hdf5_get(c, 1), flags = cm_hdf5_get(c, 1);
    const uint64_t kind = flags & 8 ? cm_hdf5_get(c, 1) : 0;

    if (version != 1)
        return cm_hdf5_broken(p->h, "a link has an unknown version");
    if (flags & 4)
        cm_hdf5_get(c, 8);
    if (flags & 16)
        cm_hdf5_get(c, 1);
    const uint64_t size = cm_hdf5_get(c, 1 << (flags & 3));
    const struct cm_str name = cm_hdf5_take(c, size);
    if (kind != 0) /* to a name, here or in another file: not followed */
        return CM_OK;
    const uint64_t address = cm_hdf5_get(c, 8);
    if (c->cut)
        return cm_hdf5_broken(p->h, "a link is cut");
    *CM_PUSH(p->h->arena, &p->links) = (struct cm_hdf5_link){name, address};
    return CM_OK;
}

/* Groups with many links, objects with many attributes: in a fractal heap. */
static enum cm_status read_info(struct cm_hdf5_facts *p, struct cm_hdf5_cursor *c, bool links)
{
    cm_hdf5_get(c, 1);
    const uint64_t flags = cm_hdf5_get(c, 1);

    if (flags & 1)
        cm_hdf5_get(c, links ? 8 : 2);
    if (cm_hdf5_get(c, 8) != CM_HDF5_NONE && !c->cut)
        return cm_hdf5_unsupported(p, links ? "has its members in a fractal heap"
                                            : "has its attributes in a fractal heap");
    return CM_OK;
}

static enum cm_status read_message(struct cm_hdf5_facts *p, unsigned kind, unsigned flags,
                                   struct cm_hdf5_cursor c)
{
    switch (kind) {
    case MESSAGE_SPACE:
        p->has_shape = !(flags & SHARED) && cm_hdf5_read_space(&c, &p->shape);
        return CM_OK;
    case MESSAGE_TYPE:
        if (flags & SHARED)
            return cm_hdf5_unsupported(p, "has a named type");
        cm_hdf5_read_type(&c, &p->type);
        p->has_type = !c.cut;
        return CM_OK;
    case MESSAGE_LAYOUT:
        return read_layout(p, &c);
    case MESSAGE_FILTERS:
        return read_filters(p, &c);
    case MESSAGE_ATTRIBUTE:
        return flags & SHARED ? CM_OK : read_attribute(p, &c);
    case MESSAGE_LINK:
        return read_link(p, &c);
    case MESSAGE_LINK_INFO:
        p->object->is_group = true;
        return read_info(p, &c, true);
    case MESSAGE_ATTRIBUTE_INFO:
        return read_info(p, &c, false);
    case MESSAGE_TABLE:
        p->object->is_group = p->has_table = true;
        p->tree = cm_hdf5_get(&c, 8);
        p->heap = cm_hdf5_get(&c, 8);
        return CM_OK;
    default:
        return CM_OK;
    }
}

/* ---- headers of objects ---- */

struct block {
    uint64_t address, size;
};
struct blocks {
    CM_ARRAY(struct block);
};

/* The messages of one block; what MESSAGE_MORE names is added to the list. */
static enum cm_status read_block(struct cm_hdf5_facts *p, struct blocks *blocks,
                                 struct cm_hdf5_cursor c, unsigned version, bool has_order)
{
    const int head = version == 1 ? 8 : has_order ? 6 : 4;

    while (c.end - c.at >= head) {
        const unsigned kind = (unsigned)cm_hdf5_get(&c, version == 1 ? 2 : 1);
        const uint64_t size = cm_hdf5_get(&c, 2);
        const unsigned flags = (unsigned)cm_hdf5_get(&c, 1);

        cm_hdf5_get(&c, version == 1 ? 3 : has_order ? 2 : 0);
        struct cm_hdf5_cursor message = cm_hdf5_over(cm_hdf5_take(&c, size));
        if (c.cut)
            return cm_hdf5_broken(p->h, "a message is cut");
        if (kind == MESSAGE_MORE) {
            struct block *more = CM_PUSH(p->h->arena, blocks);
            more->address = cm_hdf5_get(&message, 8);
            more->size = cm_hdf5_get(&message, 8);
        } else
            CM_TRY(read_message(p, kind, flags, message));
    }
    return CM_OK;
}

static enum cm_status read_old_header(struct cm_hdf5_facts *p, uint64_t address)
{
    struct blocks blocks = {0};
    struct cm_hdf5_cursor c;

    CM_TRY(cm_hdf5_at(p->h, address, 16, &c));
    if (cm_hdf5_get(&c, 1) != 1)
        return cm_hdf5_broken(p->h, "an object is not where it should be");
    cm_hdf5_get(&c, 7);
    *CM_PUSH(p->h->arena, &blocks) = (struct block){address + 16, cm_hdf5_get(&c, 4)};
    for (size_t i = 0; i < blocks.count; i++) {
        CM_TRY(cm_hdf5_at(p->h, blocks.items[i].address, blocks.items[i].size, &c));
        CM_TRY(read_block(p, &blocks, c, 1, false));
    }
    return CM_OK;
}

static enum cm_status read_new_header(struct cm_hdf5_facts *p, uint64_t address)
{
    struct blocks blocks = {0};
    struct cm_hdf5_cursor c;

    CM_TRY(cm_hdf5_at(p->h, address, 6, &c));
    cm_hdf5_take(&c, 4);
    const uint64_t version = cm_hdf5_get(&c, 1), flags = cm_hdf5_get(&c, 1);
    if (version != 2)
        return cm_hdf5_broken(p->h, "an object has an unknown version");
    const uint64_t skipped = 6U + (flags & 32 ? 16U : 0) + (flags & 16 ? 4U : 0);
    const int width = 1 << (flags & 3);
    CM_TRY(cm_hdf5_at(p->h, address + skipped, (uint64_t)width, &c));
    const uint64_t size = cm_hdf5_get(&c, width);
    CM_TRY(cm_hdf5_at(p->h, address + skipped + (uint64_t)width, size, &c));
    CM_TRY(read_block(p, &blocks, c, 2, flags & 4));
    for (size_t i = 0; i < blocks.count; i++) {
        CM_TRY(cm_hdf5_at(p->h, blocks.items[i].address, blocks.items[i].size, &c));
        if (!cm_str_is(cm_hdf5_take(&c, 4), "OCHK") || c.end - c.at < 4)
            return cm_hdf5_broken(p->h, "a part of an object is missing");
        c.end -= 4; /* check sum */
        CM_TRY(read_block(p, &blocks, c, 2, flags & 4));
    }
    return CM_OK;
}

enum cm_status cm_hdf5_read_header(struct cm_hdf5_facts *p, uint64_t address)
{
    struct cm_hdf5_cursor c;

    CM_TRY(cm_hdf5_at(p->h, address, 4, &c));
    return cm_str_is(cm_hdf5_take(&c, 4), "OHDR") ? read_new_header(p, address)
                                                  : read_old_header(p, address);
}
