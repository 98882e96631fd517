/* CSV as data: which columns make what, and what is wrong with a line. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "io/dataset_case.h"

static char path[FOLDER_PATH_SIZE];
static struct folder folder;

static const char *csv(const char *text)
{
    return dataset_file(&folder, "d.csv", text, strlen(text), path);
}

static void check_values(struct cm_dataset *dataset, const char *name, const double *expected,
                         int64_t n)
{
    const int at = cm_dataset_find(dataset, cm_str(name));
    double values[64];

    CHECK(at >= 0 && n <= 64);
    dataset_values(dataset, (size_t)at, values, n);
    for (int64_t i = 0; i < n; i++)
        CHECK(values[i] == expected[i]);
}

#define VALUES(dataset, name, ...)                                                                 \
    check_values(dataset, name, (const double[]){__VA_ARGS__},                                     \
                 sizeof((double[]){__VA_ARGS__}) / sizeof(double))

void test_csv__without_columns_the_last_is_y(void)
{
    folder_make(&folder);
    struct cm_dataset *dataset = dataset_open(csv("a,b,label\n1,2.5,0\n-3,4e2,1\n"), NULL);
    CHECK_INT(cm_dataset_samples(dataset), 2);
    VALUES(dataset, "x", 1, 2.5, -3, 400);
    VALUES(dataset, "y", 0, 1);
    CHECK_INT(cm_dataset_field(dataset, 0)->type, CM_FLOAT);
    CHECK(cm_shape_equal(&cm_dataset_field(dataset, 0)->sample, &CM_SHAPE(2)));
    CHECK_INT(cm_dataset_field(dataset, 1)->type, CM_INT64);
    CHECK_INT(cm_dataset_field(dataset, 1)->sample.rank, 0);
    cm_dataset_close(dataset);
    folder_remove(&folder);
}

void test_csv__columns_make_arrays(void)
{
    const char *text = "label,p0,p1,p2,\"a name\"\n7,1,2,3,4\n8,5,6,7,8\n";

    folder_make(&folder);
    struct cm_dataset *dataset =
        dataset_open(csv(text), "x=p0..p2 y=label  z:int8=\"a name\",p0 w:double=*,label");
    CHECK_INT(cm_dataset_field_count(dataset), 4);
    VALUES(dataset, "x", 1, 2, 3, 5, 6, 7);
    VALUES(dataset, "y", 7, 8);
    VALUES(dataset, "z", 4, 1, 8, 5);
    VALUES(dataset, "w", 7, 8);
    CHECK_INT(cm_dataset_field(dataset, 2)->type, CM_INT8);
    CHECK_INT(cm_dataset_field(dataset, 3)->type, CM_DOUBLE);
    cm_dataset_close(dataset);
    dataset = dataset_open(csv(text), "y=label x=*");
    VALUES(dataset, "x", 1, 2, 3, 4, 5, 6, 7, 8);
    cm_dataset_close(dataset);
    folder_remove(&folder);
}

void test_csv__reads_what_programs_write(void)
{
    folder_make(&folder);
    struct cm_dataset *dataset = dataset_open(csv("\xef\xbb\xbf"
                                                  "a;b\r\n\"1.5\"; 2 \r\n\r\n+3;nan"),
                                              NULL);
    CHECK_INT(cm_dataset_samples(dataset), 2);
    VALUES(dataset, "x", 1.5, 3);
    CHECK_INT(cm_dataset_field(dataset, 1)->type, CM_FLOAT);
    cm_dataset_close(dataset);
    folder_remove(&folder);
}

void test_csv__says_which_line_and_column_is_wrong(void)
{
    static const struct {
        const char *text, *columns, *part;
        enum cm_status status;
    } rows[] = {
        {"", NULL, "d.csv: it is empty", CM_BAD_MODEL},
        {"a,b\n", NULL, "it has no line after its header", CM_BAD_MODEL},
        {"1,2\n3,4\n", NULL, "its first line holds numbers", CM_BAD_MODEL},
        {"a,a\n1,2\n", NULL, "two columns 'a'", CM_BAD_MODEL},
        {"a\n1\n", NULL, "it has one column 'a'", CM_BAD_MODEL},
        {"a,b\n1,2\n3\n", NULL, "line 3 has fewer cells than the 2 columns", CM_BAD_MODEL},
        {"a,b\n1,2,3\n", NULL, "line 2 has more cells than the 2 columns", CM_BAD_MODEL},
        {"a,b\n1,2\n3,\n", NULL, "line 3: column 'b' is empty", CM_BAD_MODEL},
        {"a,b\n\"1\n\",2\n3,x y\n", NULL, "column 'a' holds '1", CM_BAD_MODEL},
        {"a,b\n1,setosa\n", NULL, "line 2: column 'b' holds 'setosa', no number", CM_BAD_MODEL},
        {"a,b\n1,9007199254740993\n", NULL, "too large to be kept exactly", CM_BAD_MODEL},
        {"a,b\n1,\"2\n", NULL, "line 2 has a quote without an end", CM_BAD_MODEL},
        {"a,b\n1,\"2\"3\n", NULL, "line 2 goes on after a quote", CM_BAD_MODEL},
        {"age,b\n1,2\n", "x=agd y=b", "no column 'agd'; did you mean 'age'?", CM_NOT_FOUND},
        {"age,b\n1,2\n", "x=weight", "no column 'weight' among its 2", CM_NOT_FOUND},
        {"a,b\n1,2\n", "x", "'x' lacks '='", CM_BAD_ARGUMENT},
        {"a,b\n1,2\n", "x=a x=b", "two arrays 'x'", CM_BAD_ARGUMENT},
        {"a,b\n1,2\n", "x:number=a", "'number' is not an element type", CM_BAD_ARGUMENT},
        {"a,b\n1,2\n", "x:string=a", "array 'x': its double cannot be converted to string",
         CM_BAD_ARGUMENT},
        {"a,b\n1,2\n", "x=b..a", "column 'b' comes after 'a'", CM_BAD_ARGUMENT},
        {"a,b\n1,2\n", "x=a,b y=*", "no column is left for array 'y'", CM_BAD_ARGUMENT},
        {"a,b\n1,2\n", "x=\"a", "a quote has no end", CM_BAD_ARGUMENT},
        {"a,b\n1,2\n", " ", "no array is named", CM_BAD_ARGUMENT},
        {"a,b\n1,2\n", "x=a=b", "'=b' cannot be read", CM_BAD_ARGUMENT},
    };

    folder_make(&folder);
    for (size_t i = 0; i < CM_COUNT(rows); i++)
        dataset_refused(csv(rows[i].text), rows[i].columns, rows[i].status, rows[i].part);
    folder_remove(&folder);
}
