/* Proves that a saved model needs nothing but the files that were written with it. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "copy_proof.h"

#include "compare.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

/* The part of path behind the folder of the model: where the file lies relative to the model. */
static const char *behind_folder(const char *model, const char *path)
{
    const char *slash = strrchr(model, '/');

    return path + (slash ? slash + 1 - model : 0);
}

/* Beside the model, so that files can be linked rather than copied; else elsewhere. */
static bool make_folder(const char *model, char *out)
{
    const char *slash = strrchr(model, '/');
    const char *const tmp = secure_getenv("TMPDIR");
    const int size = slash ? (int)(slash - model) : 1;

    if (snprintf(out, PATH_SIZE, "%.*s/.cameo-check-XXXXXX", size, slash ? model : ".") <
            PATH_SIZE &&
        mkdtemp(out))
        return true;
    return snprintf(out, PATH_SIZE, "%s/cameo-check-XXXXXX", tmp && *tmp ? tmp : "/tmp") <
               PATH_SIZE &&
           mkdtemp(out);
}

/* The folders on the way to a file below folder; the first size bytes of path are there. */
static void make_way(char *path, size_t size)
{
    for (char *at = path + size + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        (void)!mkdir(path, 0700);
        *at = '/';
    }
}

static bool copy_bytes(const char *from, const char *to, struct cameo_error *err)
{
    static char buffer[1 << 16];
    struct cameo_file *file = NULL;
    const int fd = open(from, O_RDONLY | O_CLOEXEC);
    ssize_t got = -1;

    if (fd < 0 || cameo_file_new(to, NULL, &file, err) != CAMEO_OK) {
        if (fd < 0)
            snprintf(err->message, sizeof err->message, "cannot read '%.600s': %s", from,
                     strerror(errno));
        else
            close(fd);
        return false;
    }
    while ((got = read(fd, buffer, sizeof buffer)) > 0)
        if (cameo_file_write(file, buffer, (size_t)got, err) != CAMEO_OK)
            break;
    if (got < 0)
        snprintf(err->message, sizeof err->message, "cannot read '%.600s': %s", from,
                 strerror(errno));
    const bool done = got == 0 && cameo_file_commit(file, err) == CAMEO_OK;
    cameo_file_free(file);
    close(fd);
    return done;
}

static int put_there(const char *model, const char *path, const char *folder)
{
    char to[PATH_SIZE];
    struct cameo_error err = {.message = "its path is too long"};

    if (snprintf(to, sizeof to, "%s/%s", folder, behind_folder(model, path)) < PATH_SIZE) {
        make_way(to, strlen(folder));
        if (link(path, to) == 0 || copy_bytes(path, to, &err))
            return CLI_YES;
    }
    cli_complain("strip: --check cannot copy %s into a folder of its own: %s", path, err.message);
    return CLI_MACHINE;
}

static void take_away(const char *model, const char *path, const char *folder)
{
    char to[PATH_SIZE];

    if (snprintf(to, sizeof to, "%s/%s", folder, behind_folder(model, path)) >= PATH_SIZE)
        return;
    (void)!unlink(to);
    for (char *slash; (slash = strrchr(to, '/')) && (size_t)(slash - to) > strlen(folder);) {
        *slash = 0;
        (void)!rmdir(to);
    }
}

static int refuse(const char *path, const char *why)
{
    cli_complain("strip: --check: %s does not stand alone: %s", path, why);
    return CLI_NO;
}

static int check_rules(const char *path, const struct cameo_model *copy)
{
    struct cameo_findings *findings;
    struct cameo_error err;

    if (cameo_model_check(copy, NULL, &findings, &err) != CAMEO_OK)
        return cli_fail(&err);
    const size_t violations = cameo_findings_violations(findings);
    const struct cameo_finding *finding = cameo_findings_at(findings, 0);

    for (size_t i = 0; finding && finding->severity == CAMEO_WARNING; i++)
        finding = cameo_findings_at(findings, i);
    if (violations) {
        cli_complain("strip: --check: %s is not legal ONNX, %zu violation%s, the first: %s: %s; "
                     "'cameo check' lists all",
                     path, violations, violations == 1 ? "" : "s",
                     finding ? finding->place.data : "", finding ? finding->reason.data : "");
    }
    cameo_findings_free(findings);
    return violations ? CLI_NO : CLI_YES;
}

static void print_count(const char *before, const struct cameo_comparison *c,
                        enum cameo_compare_part part, const char *what)
{
    const size_t count = cameo_comparison_compared(c, part);

    printf("%s %zu %s%s", before, count, what, count == 1 ? "" : "s");
}

static void tell(const char *path, const struct cli_saved *saved,
                 const struct cameo_comparison *weights, const struct cameo_comparison *results)
{
    fputs("checked ", stdout);
    cli_put_text(stdout, path, strlen(path));
    printf(": it loads from a folder that holds nothing else%s, is legal ONNX",
           saved->file_count ? " but its external data" : "");
    print_count(", and its", weights, CAMEO_COMPARE_WEIGHTS, "tensor");
    if (results) {
        print_count(" and", results, CAMEO_COMPARE_RESULTS, "result");
        fputs(" on random inputs", stdout);
    }
    printf(" equal the original's%s\n", results ? "" : "; it was not run");
}

/* Bit for bit: the same nodes compute on the same weights. A code other than CLI_YES says that
 * *out is NULL, and why. */
static int compare_part(const struct cameo_model *a, const struct cameo_model *b,
                        enum cameo_compare_part part, struct cameo_comparison **out)
{
    struct cameo_session_options session = CAMEO_SESSION_OPTIONS_INIT;
    struct cameo_make_options make = CAMEO_MAKE_OPTIONS_INIT;
    struct cameo_compare_options o = CAMEO_COMPARE_OPTIONS_INIT;
    struct cameo_error err;

    session.findings = &cli_found;
    session.memory_limit = make.memory_limit = cli_memory_limit(0);
    o.parts = 1u << part;
    o.relative = o.absolute = 0;
    o.make = &make;
    o.session = &session;
    return cameo_model_compare(a, b, &o, out, &err) == CAMEO_OK ? CLI_YES : cli_fail_found(&err);
}

static int refuse_part(const struct cameo_comparison *c, enum cameo_compare_part part,
                       const struct cli_saved *saved, const char *why)
{
    struct compare_request request = {.random = true};

    request.wanted[part] = true;
    compare_print(&request, c);
    return refuse(saved->path, why);
}

static int compare_copy(const struct cameo_model *original, const struct cameo_model *stripped,
                        const struct cameo_model *copy, const struct cli_saved *saved)
{
    struct cameo_comparison *weights, *results = NULL;
    int code = compare_part(stripped, copy, CAMEO_COMPARE_WEIGHTS, &weights);

    if (code != CLI_YES)
        return code;
    if (cameo_comparison_differing(weights, CAMEO_COMPARE_WEIGHTS))
        code = refuse_part(weights, CAMEO_COMPARE_WEIGHTS, saved,
                           "its tensors differ from the original's");
    /* A model that does not run here is a good copy all the same. */
    if (code == CLI_YES)
        (void)compare_part(original, copy, CAMEO_COMPARE_RESULTS, &results);
    if (results && cameo_comparison_differing(results, CAMEO_COMPARE_RESULTS))
        code = refuse_part(results, CAMEO_COMPARE_RESULTS, saved,
                           "its results differ from the original's");
    if (code == CLI_YES)
        tell(saved->path, saved, weights, results);
    cameo_comparison_free(results);
    cameo_comparison_free(weights);
    return code;
}

static int look_at(const struct cameo_model *original, const struct cameo_model *stripped,
                   const struct cli_saved *saved, const char *folder)
{
    struct cameo_model *copy;
    struct cameo_load_options load = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_error err;
    char path[PATH_SIZE];

    if (snprintf(path, sizeof path, "%s/%s", folder, behind_folder(saved->path, saved->path)) >=
        PATH_SIZE)
        return refuse(saved->path, "the path of its copy is too long");
    load.allow_links = true; /* files are there under a second name */
    if (cli_load_model(path, &load, &copy, &err) != CAMEO_OK)
        return refuse(saved->path, err.message);
    int code = check_rules(saved->path, copy);
    if (code == CLI_YES)
        code = compare_copy(original, stripped, copy, saved);
    cameo_model_free(copy);
    return code;
}

int cli_prove_copy(const struct cameo_model *original, const struct cameo_model *stripped,
                   const struct cli_saved *saved)
{
    char folder[PATH_SIZE];

    if (!make_folder(saved->path, folder)) {
        cli_complain("strip: --check: no folder can be made for the check: %s", strerror(errno));
        return CLI_MACHINE;
    }
    int code = put_there(saved->path, saved->path, folder);
    for (size_t i = 0; i < saved->file_count && code == CLI_YES; i++)
        code = put_there(saved->path, saved->files[i].path, folder);
    if (code == CLI_YES)
        code = look_at(original, stripped, saved, folder);
    take_away(saved->path, saved->path, folder);
    for (size_t i = 0; i < saved->file_count; i++)
        take_away(saved->path, saved->files[i].path, folder);
    (void)!rmdir(folder);
    return code == CLI_YES ? cli_flush(stdout, "standard output") : code;
}
