/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "parts/ledger-internal.h"
#include "parts/ledger.h"
#include "json/json-number.h"

/* --- sums of statistics ----------------------------------------------------------------------- */

static struct json_object *add_objects(struct json_object *a, struct json_object *b)
{
    struct json_object *sum = dt_json_new_object();
    json_object_object_foreach(a, name, value)
    {
        struct json_object *other, *both = NULL;
        if (json_object_object_get_ex(b, name, &other))
            both = dt_ledger_add_stats(value, other);
        if (both)
            dt_json_object_add(sum, name, both);
    }
    return sum;
}

static struct json_object *add_arrays(struct json_object *a, struct json_object *b)
{
    struct json_object *sum = dt_json_new_array();
    for (size_t i = 0; i < json_object_array_length(a); i++)
        dt_json_array_add(sum, dt_ledger_add_stats(json_object_array_get_idx(a, i),
                                                   json_object_array_get_idx(b, i)));
    return sum;
}

/* NULL: the sum has more than 64 bits, as that of two hashes. */
static struct json_object *add_ints(struct json_object *a, struct json_object *b)
{
    int64_t sum;
    return __builtin_add_overflow(json_object_get_int64(a), json_object_get_int64(b), &sum)
               ? NULL
               : dt_json_new_int(sum);
}

struct json_object *dt_ledger_add_stats(struct json_object *a, struct json_object *b)
{
    enum json_type type = json_object_get_type(a);
    if (type == json_object_get_type(b)) {
        if (type == json_type_int)
            return add_ints(a, b);
        if (type == json_type_object)
            return add_objects(a, b);
        if (type == json_type_array && json_object_array_length(a) == json_object_array_length(b))
            return add_arrays(a, b);
    }
    return json_object_equal(a, b) ? json_object_get(a) : NULL;
}

/* --- reading ---------------------------------------------------------------------------------- */

static int64_t int_of(struct json_object *object, const char *name)
{
    struct json_object *value;
    return json_object_object_get_ex(object, name, &value) ? json_object_get_int64(value) : 0;
}

static double real_of(struct json_object *object, const char *name)
{
    struct json_object *value;
    return json_object_object_get_ex(object, name, &value) ? json_object_get_double(value) : 0;
}

static const char *text_of(struct json_object *object, const char *name)
{
    struct json_object *value;
    return json_object_object_get_ex(object, name, &value) && value ? dt_json_text(value) : "";
}

static struct json_object *member(struct json_object *object, const char *name)
{
    struct json_object *value = NULL;
    json_object_object_get_ex(object, name, &value);
    return value;
}

static void add_int(struct json_object *stage, const char *name, int64_t more)
{
    dt_json_object_add(stage, name, dt_json_new_int(int_of(stage, name) + more));
}

static void add_real(struct json_object *stage, const char *name, double more)
{
    dt_json_object_add(stage, name, dt_json_number(real_of(stage, name) + more));
}

static struct json_object *new_stage(const char *name)
{
    struct json_object *stage = dt_json_new_object();
    dt_json_object_add(stage, "stage", dt_json_new_string(name));
    dt_json_object_add(stage, "parts", dt_json_new_int(0));
    dt_json_object_add(stage, "done", dt_json_new_int(0));
    dt_json_object_add(stage, "failed", dt_json_new_array());
    dt_json_object_add(stage, "started", dt_json_new_array());
    dt_json_object_add(stage, "missing", dt_json_new_array());
    return stage;
}

/* Adds what a finished part read and wrote. */
static int add_done(struct json_object *stage, struct json_object *record, const char *path,
                    struct dt_error *err)
{
    static const char *const counts[] = {"documents", "tokens", "text_bytes", "bytes"};
    struct json_object *outputs = member(record, "outputs"), *stats = member(record, "stats"), *sum;
    if (outputs)
        DT_TRY(dt_json_get(record, "outputs", json_type_array, path, &outputs, err));
    add_int(stage, "done", 1);
    for (size_t i = 0; outputs && i < json_object_array_length(outputs); i++)
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
            add_int(stage, counts[k], int_of(json_object_array_get_idx(outputs, i), counts[k]));
    if (stats == NULL)
        return 0;
    bool first = !json_object_object_get_ex(stage, "stats", &sum); /* NULL: they cannot be added */
    dt_json_object_add(stage, "stats",
                       first ? json_object_get(stats) : dt_ledger_add_stats(sum, stats));
    return 0;
}

static int add_record(struct json_object *stage, struct json_object *record, const char *path,
                      struct dt_error *err)
{
    const char *state;
    DT_TRY(dt_json_get_string(record, "state", path, &state, err));
    add_int(stage, "attempts", int_of(record, "attempt"));
    add_real(stage, "seconds", real_of(record, "seconds"));
    add_real(stage, "cpu_seconds", real_of(record, "cpu_seconds"));
    if (strcmp(state, DT_LEDGER_DONE) == 0)
        return add_done(stage, record, path, err);
    if (strcmp(state, DT_LEDGER_FAILED) != 0 && strcmp(state, DT_LEDGER_STARTED) != 0)
        return dt_fail(err, DT_EFORMAT, "%s: state '%s' is unknown", path, state);
    dt_json_array_add(member(stage, state), json_object_get(record));
    return 0;
}

/* Reads the files of a stage of that number of parts. */
static int read_stage(struct json_object *stage, const char *ledger, long parts,
                      struct dt_error *err)
{
    const char *name = text_of(stage, "stage");
    int rc = 0;
    dt_json_object_add(stage, "parts", dt_json_new_int(parts));
    for (long i = 0; rc == 0 && i < parts; i++) {
        struct json_object *record = NULL;
        char *path = dt_ledger_path(ledger, name, i, parts, ".json");
        int found = dt_file_probe(path, err);
        if (found == 0)
            dt_json_array_add(member(stage, "missing"), dt_json_new_int(i));
        rc = found > 0 ? dt_json_read(path, &record, err) : found;
        if (rc == 0 && found > 0)
            rc = add_record(stage, record, path, err);
        json_object_put(record);
        free(path);
    }
    return rc;
}

/* A stage of a ledger: "tokenize-000003-of-000064.json" has name "tokenize" and 64 parts. */
struct stage {
    char name[65];
    long parts;
};

static bool parse_name(const char *file, struct stage *s)
{
    int length = 0;
    const char *end = NULL, *number;
    for (const char *at = file; (at = strstr(at, "-of-")) != NULL; at++)
        end = at; /* the name of a stage may have others */
    number = end;
    while (number && number > file && number[-1] >= '0' && number[-1] <= '9')
        number--;
    size_t n = number && number > file ? (size_t)(number - file) - 1 : 0;
    if (n == 0 || n >= sizeof s->name || end - number != 6 || file[n] != '-' ||
        sscanf(end, "-of-%6ld.json%n", &s->parts, &length) != 1 || length == 0 || end[length] ||
        s->parts < 1)
        return false;
    memcpy(s->name, file, n);
    s->name[n] = '\0';
    return true;
}

/* "STAGE/N", or "STAGE", whose number of parts is 0. */
static int parse_plan(const char *text, struct stage *s, struct dt_error *err)
{
    char *end = "";
    const char *slash = strchr(text, '/');
    size_t n = slash ? (size_t)(slash - text) : strlen(text);
    *s = (struct stage){.name = ""};
    if (n < sizeof s->name)
        memcpy(s->name, text, n);
    if (slash)
        s->parts = strtol(slash + 1, &end, 10);
    if (*end || (slash && (slash[1] < '0' || slash[1] > '9' || s->parts < 1)))
        return dt_fail(err, DT_EINVALID, "'%s' is not STAGE or STAGE/N, a stage of N parts", text);
    return dt_ledger_check_stage(s->name, err);
}

int dt_ledger_check_plan(const char *text, struct dt_error *err)
{
    struct stage s;
    return parse_plan(text, &s, err);
}

static int by_name(const void *a, const void *b)
{
    const struct stage *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->parts > y->parts) - (x->parts < y->parts);
}

/* The stages that have files, sorted, each once; an array owned by the caller. */
static int find_stages(const char *ledger, struct stage **stages, int *count, struct dt_error *err)
{
    int found = 0, capacity = 0;
    struct stage *all = NULL;
    DIR *dir = opendir(ledger);
    if (dir == NULL)
        return dt_fail_errno(err, "cannot open directory '%s'", ledger);
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        DT_GROW(all, found, capacity);
        found += parse_name(e->d_name, &all[found]);
    }
    closedir(dir);
    if (found > 0)
        qsort(all, (size_t)found, sizeof *all, by_name);
    *count = 0;
    for (int i = 0; i < found; i++)
        if (i == 0 || by_name(&all[i], &all[*count - 1]) != 0)
            all[(*count)++] = all[i];
    *stages = all;
    return 0;
}

static void add_other_plans(struct json_object *stage, const struct stage *this,
                            const struct stage *found, int count)
{
    struct json_object *others = dt_json_new_array();
    for (int i = 0; i < count; i++)
        if (strcmp(found[i].name, this->name) == 0 && found[i].parts != this->parts)
            dt_json_array_add(others, dt_json_new_int(found[i].parts));
    if (json_object_array_length(others) > 0)
        dt_json_object_add(stage, "other_plans", others);
    else
        json_object_put(others);
}

static bool is_wanted(const struct stage *s, const struct stage *wanted)
{
    return wanted == NULL || (strcmp(s->name, wanted->name) == 0 &&
                              (wanted->parts == 0 || wanted->parts == s->parts));
}

/* Adds the stages that are wanted; NULL: all. One without files has 0 parts. */
static int add_stages(struct json_object *stages, const char *ledger, const struct stage *wanted,
                      const struct stage *found, int count, struct dt_error *err)
{
    bool any = false;
    for (int i = 0; i < count; i++) {
        if (!is_wanted(&found[i], wanted))
            continue;
        struct json_object *stage = new_stage(found[i].name);
        dt_json_array_add(stages, stage);
        add_other_plans(stage, &found[i], found, count);
        DT_TRY(read_stage(stage, ledger, found[i].parts, err));
        any = true;
    }
    if (wanted && !any) {
        struct json_object *stage = new_stage(wanted->name);
        dt_json_array_add(stages, stage);
        add_other_plans(stage, wanted, found, count);
    }
    return 0;
}

int dt_ledger_read(struct json_object **stages, const char *ledger, char *const *names, int count,
                   struct dt_error *err)
{
    struct stage *found = NULL;
    int found_count = 0, rc = 0;
    DT_TRY(find_stages(ledger, &found, &found_count, err));
    *stages = dt_json_new_array();
    if (count == 0)
        rc = add_stages(*stages, ledger, NULL, found, found_count, err);
    for (int i = 0; rc == 0 && i < count; i++) {
        struct stage wanted;
        rc = parse_plan(names[i], &wanted, err);
        rc = rc < 0 ? rc : add_stages(*stages, ledger, &wanted, found, found_count, err);
    }
    if (rc == 0 && json_object_array_length(*stages) == 0)
        rc = dt_fail(err, DT_EMISSING, "%s: is not a ledger: it has no record of a part", ledger);
    if (rc < 0)
        json_object_put(*stages);
    free(found);
    return rc;
}

long dt_ledger_left(struct json_object *stages)
{
    long left = 0;
    for (size_t i = 0; i < json_object_array_length(stages); i++) {
        struct json_object *stage = json_object_array_get_idx(stages, i);
        long parts = (long)int_of(stage, "parts");
        left += parts > 0 ? parts - (long)int_of(stage, "done") : 1;
    }
    return left;
}

/* --- printing --------------------------------------------------------------------------------- */

static size_t length_of(struct json_object *stage, const char *name)
{
    return json_object_array_length(member(stage, name));
}

/* Number i of the statistics of each part, from 0; NULL: no more. */
static struct json_object *stats_of(struct json_object *stage, size_t i)
{
    struct json_object *stats = member(stage, "stats");
    if (json_object_is_type(stats, json_type_array))
        return i < json_object_array_length(stats) ? json_object_array_get_idx(stats, i) : NULL;
    return i == 0 ? stats : NULL;
}

/* Of shards, or as the statistics of dt-clean count them. */
static long documents_of(struct json_object *stage)
{
    struct json_object *stats, *documents = NULL;
    for (size_t i = 0; documents == NULL && (stats = stats_of(stage, i)) != NULL; i++)
        documents = member(stats, "documents");
    return (long)(documents ? int_of(documents, "out") : int_of(stage, "documents"));
}

/* Prints how many lines were not documents. */
static void print_skipped(struct json_object *stage, struct dt_buffer *text)
{
    struct json_object *stats;
    long skipped = 0;
    for (size_t i = 0; (stats = stats_of(stage, i)) != NULL; i++)
        skipped += (long)int_of(stats, "lines_skipped");
    if (skipped > 0)
        dt_buffer_printf(text, "%s: %ld lines or records were skipped or moved to quarantine\n",
                         text_of(stage, "stage"), skipped);
}

/* Numbers of parts that are not those of the row. */
static void print_other_plans(struct json_object *stage, struct dt_buffer *text)
{
    struct json_object *others = member(stage, "other_plans");
    const char *name = text_of(stage, "stage");
    for (size_t i = 0; others && i < json_object_array_length(others); i++) {
        long parts = (long)json_object_get_int64(json_object_array_get_idx(others, i));
        dt_buffer_printf(text,
                         "%s/%ld: another plan, of %ld part%s, has records too; remove "
                         "%s-*-of-%06ld.json if it is of the past\n",
                         name, parts, parts, parts == 1 ? "" : "s", name, parts);
    }
}

static void print_row(struct json_object *stage, struct dt_buffer *text)
{
    double seconds = real_of(stage, "cpu_seconds");
    double rate = seconds > 0 ? (double)int_of(stage, "bytes") / 1e6 / seconds : 0;
    dt_buffer_printf(
        text, "%-12s%7ld%7ld%7zu%8zu%8zu%12.1f%13ld%15ld%10.1f%9.2f\n", text_of(stage, "stage"),
        (long)int_of(stage, "parts"), (long)int_of(stage, "done"), length_of(stage, "failed"),
        length_of(stage, "started"), length_of(stage, "missing"), seconds, documents_of(stage),
        (long)int_of(stage, "tokens"), (double)int_of(stage, "bytes") / 1e6, rate);
}

static void print_parts(struct json_object *stage, const char *state, struct dt_buffer *text)
{
    struct json_object *records = member(stage, state);
    for (size_t i = 0; i < json_object_array_length(records); i++) {
        struct json_object *r = json_object_array_get_idx(records, i);
        dt_buffer_printf(text, "%s %ld/%ld: %s on %s, attempt %ld", text_of(stage, "stage"),
                         (long)int_of(r, "part"), (long)int_of(r, "parts"), state,
                         text_of(r, "host"), (long)int_of(r, "attempt"));
        if (strcmp(state, DT_LEDGER_STARTED) == 0)
            dt_buffer_printf(text, ", at %s: is running or was killed\n", text_of(r, "started"));
        else
            dt_buffer_printf(text, ", status %ld: %s\n", (long)int_of(r, "status"),
                             text_of(r, "error"));
    }
}

/* "tokenize: missing 3 5-7 of 0-63" */
static void print_missing(struct json_object *stage, struct dt_buffer *text)
{
    struct json_object *missing = member(stage, "missing");
    size_t count = json_object_array_length(missing);
    long parts = (long)int_of(stage, "parts");
    if (parts == 0)
        dt_buffer_printf(text, "%s: no part has a record\n", text_of(stage, "stage"));
    if (count == 0)
        return;
    dt_buffer_printf(text, "%s: missing", text_of(stage, "stage"));
    for (size_t i = 0, end; i < count; i = end) {
        int64_t first = json_object_get_int64(json_object_array_get_idx(missing, i));
        for (end = i + 1; end < count && json_object_get_int64(json_object_array_get_idx(
                                             missing, end)) == first + (int64_t)(end - i);)
            end++;
        dt_buffer_printf(text, end - i > 1 ? " %ld-%ld" : " %ld", (long)first,
                         (long)first + (long)(end - i) - 1);
    }
    dt_buffer_printf(text, " of 0-%ld\n", parts - 1);
}

void dt_ledger_print(struct json_object *stages, struct dt_buffer *text)
{
    dt_buffer_printf(text, "%-12s%7s%7s%7s%8s%8s%12s%13s%15s%10s%9s\n", "stage", "parts", "done",
                     "failed", "started", "missing", "cpu s", "documents", "tokens", "MB out",
                     "MB/cpu s");
    for (size_t i = 0; i < json_object_array_length(stages); i++)
        print_row(json_object_array_get_idx(stages, i), text);
    for (size_t i = 0; i < json_object_array_length(stages); i++) {
        struct json_object *stage = json_object_array_get_idx(stages, i);
        print_parts(stage, DT_LEDGER_FAILED, text);
        print_parts(stage, DT_LEDGER_STARTED, text);
        print_missing(stage, text);
        print_skipped(stage, text);
        print_other_plans(stage, text);
    }
}
