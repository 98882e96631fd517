/* dlopen with a fixed list of places. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "base/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#ifndef CM_LIBRARY_DIR
#define CM_LIBRARY_DIR ""
#endif
#ifndef CM_LIBRARY_BESIDE
#define CM_LIBRARY_BESIDE ""
#endif

/* Where the file that holds this code lies, without the last slash; "" when that is not known. */
static void own_folder(char *out, size_t size)
{
    static const char here;
    Dl_info mine, program;
    ssize_t length;

    out[0] = '\0';
    if (!dladdr(&here, &mine) || !mine.dli_fname)
        return;
    /* A program's name is what its caller chose to say, so the kernel is asked. */
    const bool is_program =
        dladdr((const void *)getauxval(AT_PHDR), &program) && program.dli_fbase == mine.dli_fbase;
    if (is_program) {
        length = readlink("/proc/self/exe", out, size - 1);
        out[length > 0 ? length : 0] = '\0';
    } else {
        snprintf(out, size, "%s", mine.dli_fname);
    }
    char *slash = strrchr(out, '/');
    if (out[0] == '/' && slash)
        *slash = '\0';
    else
        out[0] = '\0';
}

/* Does LD_LIBRARY_PATH lead into the working folder? An empty element of it does. */
static bool searches_working_folder(void)
{
    const char *at = secure_getenv("LD_LIBRARY_PATH");

    if (!at || !*at)
        return false;
    for (;; at++) {
        if (*at != '/')
            return true;
        at += strcspn(at, ":;");
        if (!*at)
            return false;
    }
}

/* The path by which it was found. */
static void note_path(struct cm_library *library, const char *name)
{
    struct link_map *map = NULL;
    const bool found = dlinfo(library->handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name;

    snprintf(library->path, sizeof library->path, "%s", found ? map->l_name : name);
}

/* Its reason is all that the loader gives: with the text of errno at its end, or, where there is no
 * address space for the file, without. */
static bool is_about_memory(const char *reason)
{
    static const char no_space[] = "failed to map segment from shared object";
    const size_t length = reason ? strlen(reason) : 0;

    return reason && (strstr(reason, strerror(ENOMEM)) || strstr(reason, "out of memory") ||
                      (length >= sizeof no_space &&
                       strcmp(reason + length + 1 - sizeof no_space, no_space) == 0));
}

static atomic_bool any_starved;

void cm_library_note_starved(struct cm_library *library)
{
    library->no_memory = true;
    atomic_store_explicit(&any_starved, true, memory_order_relaxed);
}

bool cm_library_any_starved(void)
{
    return atomic_load_explicit(&any_starved, memory_order_relaxed);
}

/* A file that is there but cannot be loaded is worth telling; one that is missing is not. */
static bool open_one(struct cm_library *library, const char *path)
{
    library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library->handle) {
        library->why[0] = '\0'; /* of a name before */
        note_path(library, path);
        return true;
    }
    const char *reason = dlerror();
    const size_t length = strlen(path);
    if (is_about_memory(reason)) {
        cm_library_note_starved(library);
        snprintf(library->why, sizeof library->why, "no memory to load it: %s", reason);
    } else if (reason && (strncmp(reason, path, length) != 0 || !strstr(reason, "No such file")))
        snprintf(library->why, sizeof library->why, "%s", reason);
    return false;
}

enum { MOST_NEEDED = 8 }; /* libraries that one may need and that are not the system's */

/* What a library in our own folder needs may lie there too, as in a package of Python: where the
 * system does not have it, the loader's reason begins with its name. It stays open. */
static bool open_needed(const char *reason, const char *folder)
{
    char path[PATH_MAX];
    const size_t length = strcspn(reason, ":/");
    const int size = snprintf(path, sizeof path, "%s/%.*s", folder, (int)length, reason);

    return reason[length] == ':' && strstr(reason, "cannot open shared object file") && size > 0 &&
           (size_t)size < sizeof path && dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static bool open_in(struct cm_library *library, const char *folder, const char *name)
{
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);

    if (folder[0] != '/' || length <= 0 || (size_t)length >= sizeof path)
        return false;
    struct cm_library found = {0};
    for (int tries = 0; tries < MOST_NEEDED; tries++)
        if (open_one(&found, path) || !open_needed(found.why, folder))
            break;
    if (found.handle)
        *library = found;
    else if (found.why[0])
        snprintf(library->why, sizeof library->why, "%s", found.why);
    library->no_memory |= found.no_memory;
    return found.handle != NULL;
}

/* What is done with a folder that a library may lie in: open_in, or look_in. */
typedef bool in_fn(struct cm_library *library, const char *folder, const char *name);

static bool look_in(struct cm_library *library, const char *folder, const char *name)
{
    const int length = snprintf(library->path, sizeof library->path, "%s/%s", folder, name);

    if (folder[0] == '/' && length > 0 && (size_t)length < sizeof library->path &&
        access(library->path, R_OK) == 0)
        return true;
    library->path[0] = '\0';
    return false;
}

/* Where the library itself is. A program that was installed has its libraries in another folder,
 * whose way from its own is known when it is built. */
static bool do_beside(struct cm_library *library, const char *folder, const char *name, in_fn *in)
{
    char beside[PATH_MAX];
    const int length = snprintf(beside, sizeof beside, "%s/%s", folder, CM_LIBRARY_BESIDE);

    return in(library, folder, name) ||
           (CM_LIBRARY_BESIDE[0] && folder[0] && length > 0 && (size_t)length < sizeof beside &&
            in(library, beside, name));
}

static void say_missing(struct cm_library *library, const char *const *names)
{
    size_t used = 0;

    for (size_t i = 0; names[i] && used < sizeof library->why; i++)
        used += (size_t)snprintf(library->why + used, sizeof library->why - used, "%s%s",
                                 i == 0         ? ""
                                 : names[i + 1] ? ", "
                                                : " or ",
                                 names[i]);
    if (used < sizeof library->why)
        snprintf(library->why + used, sizeof library->why - used, " is not installed");
}

bool cm_library_open(const char *variable, const char *const *names, struct cm_library *out)
{
    const char *wish = secure_getenv(variable);
    char folder[PATH_MAX];

    *out = (struct cm_library){0};
    if (wish && strcmp(wish, "off") == 0) {
        snprintf(out->why, sizeof out->why, "%s is off", variable);
        return false;
    }
    if (wish && *wish) {
        if (!strchr(wish, '/'))
            snprintf(out->why, sizeof out->why, "%s is '%.200s', expected a path or off", variable,
                     wish);
        else if (!open_one(out, wish) && !out->why[0])
            snprintf(out->why, sizeof out->why, "%s: there is no file '%.300s'", variable, wish);
        return out->handle != NULL;
    }
    own_folder(folder, sizeof folder);
    const bool by_system = !searches_working_folder();
    for (size_t i = 0; names[i]; i++)
        if (do_beside(out, folder, names[i], open_in))
            return true;
    for (size_t i = 0; names[i]; i++)
        if (open_in(out, CM_LIBRARY_DIR, names[i]) || (by_system && open_one(out, names[i])))
            return true;
    if (!by_system && !out->why[0])
        snprintf(out->why, sizeof out->why,
                 "LD_LIBRARY_PATH has an empty or relative element, so the system is not asked "
                 "for %s",
                 names[0]);
    if (!out->why[0])
        say_missing(out, names);
    return false;
}

enum cm_status cm_library_status(const struct cm_library *library)
{
    return library->no_memory ? CM_NO_MEMORY : CM_UNSUPPORTED;
}

bool cm_library_locate(const char *variable, const char *const *names, struct cm_library *out)
{
    const char *wish = secure_getenv(variable);
    char folder[PATH_MAX];

    *out = (struct cm_library){0};
    own_folder(folder, sizeof folder);
    for (size_t i = 0; names[i] && !(wish && *wish); i++)
        if (do_beside(out, folder, names[i], look_in))
            return true;
    for (size_t i = 0; names[i] && !(wish && *wish); i++)
        if (look_in(out, CM_LIBRARY_DIR, names[i]))
            return true;
    return cm_library_open(variable, names, out);
}

bool cm_library_find(struct cm_library *library, const struct cm_symbol *symbols, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        void *const found = dlsym(library->handle, symbols[i].name);

        if (!found) {
            snprintf(library->why, sizeof library->why, "%.400s has no function %s", library->path,
                     symbols[i].name);
            return false;
        }
        memcpy(symbols[i].where, &found, sizeof found);
    }
    return true;
}
