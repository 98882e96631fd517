/* .npz: a zip file whose members are .npy files, stored or deflated. */
// SPDX-License-Identifier: Apache-2.0
#include "bytes/inflate.h"
#include "io/array_formats.h"

#include "base/map.h"
#include "base/number.h"

enum cm_status cm_npz_walk(struct cm_arena *arena, struct cm_str bytes, size_t limit,
                           cm_npz_visit_fn *visit, void *arg, struct cm_error *err)
{
    struct cm_map names = {0};
    struct cm_zip zip;

    CM_TRY(cm_zip_open(bytes, limit, &zip, err));
    for (uint64_t i = 0; i < zip.count; i++) {
        struct cm_npz_member member = {.count = (size_t)zip.count};

        CM_TRY(cm_zip_next(&zip, &member.zip, err));
        struct cm_str name = member.zip.name;
        if (!cm_str_ends(name, ".npy"))
            return cm_fail(err, CM_BAD_MODEL, "its member '%.*s' is not a .npy file",
                           CM_STR_FMT(name));
        name.size -= 4;
        if (!cm_map_add(&names, arena, name))
            return cm_fail(err, CM_BAD_MODEL, "it has two arrays '%.*s'", CM_STR_FMT(name));
        member.name = name;
        enum cm_status status = cm_zip_locate(&zip, &member.zip, err);
        if (!status)
            status = visit(arg, &member, err);
        CM_TRY(cm_error_context(err, status, "array '%.*s'", CM_STR_FMT(name)));
    }
    return CM_OK;
}

enum cm_status cm_npz_header(struct cm_arena *scratch, const struct cm_npz_member *member,
                             struct cm_npy_header *out, struct cm_error *err)
{
    if (!member->zip.deflated)
        return cm_npy_read_header(member->zip.packed, member->zip.size, out, err);
    const size_t room = cm_min_size(CM_NPY_HEADER_MAX, member->zip.size);
    uint8_t *head = cm_arena_alloc(scratch, room);
    size_t got = 0;

    CM_TRY(cm_inflate_head(member->zip.packed, head, room, &got, err));
    return cm_npy_read_header((struct cm_str){(const char *)head, got}, member->zip.size, out, err);
}

/* What parsing into memory needs to know at each member. */
struct parse {
    struct cm_arena *arena;
    const struct cm_arrays_options *options;
    struct cm_arrays *out;
};

static enum cm_status load_member(void *arg, const struct cm_npz_member *member,
                                  struct cm_error *err)
{
    const struct parse *parse = arg;
    struct cm_str bytes = member->zip.packed;
    struct cm_npy_header header;
    struct cm_tensor tensor;

    if (!cm_arrays_wants(parse->arena, parse->options, member->name, member->count, parse->out))
        return CM_OK;
    CM_TRY(cm_npz_header(parse->arena, member, &header, err));
    if (member->zip.deflated) {
        struct cm_tensor room;

        CM_TRY(cm_arrays_tensor(parse->arena, CM_UINT8, &CM_SHAPE((int64_t)member->zip.size), &room,
                                err));
        CM_TRY(cm_inflate(member->zip.packed, room.data, member->zip.size, err));
        bytes = (struct cm_str){room.data, member->zip.size};
    }
    if (cm_crc32(0, bytes.data, bytes.size) != member->zip.crc)
        return cm_fail(err, CM_BAD_MODEL, "its check sum is wrong: the file is damaged");
    CM_TRY(cm_npy_read_header(bytes, bytes.size, &header, err));
    CM_TRY(cm_npy_read_data(parse->arena, &header, (const uint8_t *)bytes.data + header.data_offset,
                            &tensor, err));
    cm_arrays_add(parse->arena, parse->out, member->name, &tensor);
    return CM_OK;
}

enum cm_status cm_npz_parse(struct cm_arena *arena, struct cm_str bytes,
                            const struct cm_arrays_options *options, struct cm_arrays *out,
                            struct cm_error *err)
{
    struct parse parse = {arena, options, out};

    return cm_npz_walk(arena, bytes, options->limit, load_member, &parse, err);
}

static enum cm_status write_member(struct cm_arena *scratch, struct cm_zip_writer *zip,
                                   const struct cm_array *item, struct cm_error *err)
{
    struct cm_npy_image image;

    CM_TRY(cm_npy_image(scratch, &item->value.tensor, &image, err));
    char *name = cm_arena_alloc(scratch, item->name.size + 5);
    if (item->name.size)
        memcpy(name, item->name.data, item->name.size);
    memcpy(name + item->name.size, ".npy", 4);
    const uint32_t crc = cm_crc32(cm_crc32(0, image.header.data, image.header.size),
                                  image.data.data, image.data.size);
    CM_TRY(cm_zip_begin_member(zip, (struct cm_str){name, item->name.size + 4},
                               image.header.size + image.data.size, &crc, err));
    CM_TRY(cm_zip_write(zip, image.header.data, image.header.size, err));
    CM_TRY(cm_zip_write(zip, image.data.data, image.data.size, err));
    return cm_zip_end_member(zip, err);
}

enum cm_status cm_npz_write(struct cm_arena *scratch, struct cm_save *save,
                            const struct cm_array *items, size_t count, struct cm_error *err)
{
    struct cm_zip_writer zip = {.arena = scratch, .save = save};

    for (size_t i = 0; i < count; i++)
        CM_TRY(write_member(scratch, &zip, &items[i], err));
    return cm_zip_finish(&zip, err);
}
