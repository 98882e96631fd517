/* Rows of .npy, .npz and .safetensors files, which stay where they are in the mapped file; only
 * deflated members are unpacked. */
// SPDX-License-Identifier: Apache-2.0
#include "bytes/inflate.h"
#include "io/array_formats.h"
#include "io/rows.h"
#include "io/spool.h"

struct visit {
    struct cm_arena *arena;
    struct cm_rows_list *out;
};

static enum cm_status add_npy(const struct visit *visit, struct cm_str name,
                              const struct cm_npy_header *header, const uint8_t *data,
                              struct cm_error *err)
{
    struct cm_rows *rows;

    CM_TRY(cm_rows_add(visit->arena, visit->out, name, header->type, &header->shape, data, &rows,
                       err));
    rows->column_major = header->column_major && header->shape.rank > 1;
    return CM_OK;
}

enum cm_status cm_rows_npy(const struct cm_rows_file *file, struct cm_rows_list *out,
                           struct cm_error *err)
{
    const struct visit visit = {file->arena, out};
    struct cm_npy_header header;

    CM_TRY(cm_npy_read_header(file->bytes, file->bytes.size, &header, err));
    return add_npy(&visit, file->name, &header,
                   (const uint8_t *)file->bytes.data + header.data_offset, err);
}

/* Unpacked bytes on their way, and their check sum. */
struct unpacking {
    struct cm_spool *spool;
    uint32_t crc;
};

static enum cm_status keep_piece(void *arg, const uint8_t *bytes, size_t size, struct cm_error *err)
{
    struct unpacking *unpacking = arg;

    unpacking->crc = cm_crc32(unpacking->crc, bytes, size);
    return cm_spool_write(unpacking->spool, bytes, size, err);
}

static enum cm_status unpack(struct cm_arena *arena, const struct cm_npz_member *member,
                             struct cm_str *out, struct cm_error *err)
{
    struct unpacking unpacking = {cm_spool_new(arena, 0), 0};

    CM_TRY(cm_inflate_stream(member->zip.packed, member->zip.size, keep_piece, &unpacking, err));
    if (unpacking.crc != member->zip.crc)
        return cm_fail(err, CM_BAD_MODEL, "its check sum is wrong: the file is damaged");
    return cm_spool_finish(unpacking.spool, out, err);
}

/* The check sum of a stored member would cost reading all of it, so it is not asked for. */
static enum cm_status add_member(void *arg, const struct cm_npz_member *member,
                                 struct cm_error *err)
{
    const struct visit *visit = arg;
    struct cm_str bytes = member->zip.packed;
    struct cm_npy_header header;

    CM_TRY(cm_npz_header(visit->arena, member, &header, err));
    if (member->zip.deflated) {
        CM_TRY(unpack(visit->arena, member, &bytes, err));
        CM_TRY(cm_npy_read_header(bytes, bytes.size, &header, err));
    }
    return add_npy(visit, member->name, &header, (const uint8_t *)bytes.data + header.data_offset,
                   err);
}

enum cm_status cm_rows_npz(const struct cm_rows_file *file, struct cm_rows_list *out,
                           struct cm_error *err)
{
    struct visit visit = {file->arena, out};

    return cm_npz_walk(file->arena, file->bytes, 0, add_member, &visit, err);
}

static enum cm_status add_entry(void *arg, const struct cm_safetensors_entry *entry,
                                struct cm_error *err)
{
    const struct visit *visit = arg;
    struct cm_rows *rows;

    return cm_rows_add(visit->arena, visit->out, entry->name, entry->type, &entry->shape,
                       (const uint8_t *)entry->bytes.data, &rows, err);
}

enum cm_status cm_rows_safetensors(const struct cm_rows_file *file, struct cm_rows_list *out,
                                   struct cm_error *err)
{
    struct visit visit = {file->arena, out};

    return cm_safetensors_walk(file->arena, file->bytes, add_entry, &visit, err);
}
