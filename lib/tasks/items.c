/* SPDX-License-Identifier: MIT */
#include "tasks/items.h"

#include <stdlib.h>
#include <string.h>

#include "eval/translation-words.h"
#include "tasks/python-random.h"
#include "unicode/utf8.h"

/* The examples of a group, and its random numbers. */
struct pool {
    size_t *documents; /* of the split of examples */
    size_t count, capacity;
    struct dt_python_random random;
};

struct maker {
    struct dt_task_items *items;
    const struct dt_task *task;
    struct dt_task_split examples; /* empty without few-shot examples */
    struct pool *pools;            /* one per group */
    long shots;
    bool leaves_out; /* a document is not its own example */
    bool in_file;    /* the examples are in the task file */
    bool inputs;     /* the choices are contexts, and the answer follows them */
    bool targets;    /* there are several right texts */
};

/* --- values -----------------------------------------------------------------------------------*/

static bool is_whole(struct json_object *value)
{
    return json_object_is_type(value, json_type_int) ||
           json_object_is_type(value, json_type_boolean);
}

static char *text_of(struct json_object *value)
{
    if (json_object_is_type(value, json_type_boolean))
        return dt_strdup(json_object_get_boolean(value) ? "True" : "False");
    return dt_strdup(value ? dt_json_text(value) : "None");
}

static const struct dt_task_part *other_or(const struct dt_task_part *other,
                                           const struct dt_task_part *part)
{
    return other->source || other->list ? other : part;
}

static bool has_choices(const struct dt_task *t)
{
    return t->choice.source || t->choice.list;
}

static int numbers_of(const struct dt_task *t)
{
    return has_choices(t) ? DT_TASK_VALUE_NUMBER : 0;
}

/* A list of texts. */
static int evaluate_choices(const struct dt_task_part *part, struct json_object *document,
                            struct json_object *features, struct json_object **list,
                            struct dt_error *err)
{
    DT_TRY(dt_task_evaluate(part, document, features, DT_TASK_VALUE_LIST, list, err));
    bool valid = json_object_is_type(*list, json_type_array) && json_object_array_length(*list) > 0;
    for (size_t i = 0; valid && i < json_object_array_length(*list); i++)
        valid = json_object_is_type(json_object_array_get_idx(*list, i), json_type_string);
    if (valid)
        return 0;
    json_object_put(*list);
    *list = NULL;
    return dt_fail(err, DT_EFORMAT, "doc_to_choice is not a list of texts");
}

/* The index of a right answer: an integer, its text, or digits. */
static int index_of(struct json_object *value, struct json_object *choices, int *index,
                    struct dt_error *err)
{
    int64_t count = (int64_t)json_object_array_length(choices), found = -1;
    char *end;
    if (is_whole(value)) {
        found = json_object_get_int64(value);
    } else if (json_object_is_type(value, json_type_string)) {
        const char *text = dt_json_text(value);
        for (int64_t i = count; i-- > 0;)
            if (strcmp(dt_json_text(json_object_array_get_idx(choices, (size_t)i)), text) == 0)
                found = i;
        if (found < 0 && *text) {
            found = strtol(text, &end, 10);
            found = *end ? -1 : found;
        }
    }
    *index = (int)found;
    if (found >= 0 && found < count)
        return 0;
    return dt_fail(err, DT_EFORMAT, "the right answer, %s, is none of the %lld choices",
                   value ? dt_json_text(value) : "null", (long long)count);
}

/* --- few-shot examples ------------------------------------------------------------------------*/

/* The answer of an example as text. */
static int example_answer(struct json_object *target, struct json_object *choices, char **answer,
                          struct dt_error *err)
{
    int index;
    *answer = NULL;
    if (choices && is_whole(target)) {
        DT_TRY(index_of(target, choices, &index, err));
        *answer = text_of(json_object_array_get_idx(choices, (size_t)index));
        return 0;
    }
    if (json_object_is_type(target, json_type_array) && json_object_array_length(target) > 0)
        target = json_object_array_get_idx(target, 0);
    if (!json_object_is_type(target, json_type_string))
        return dt_fail(err, DT_EFORMAT, "the answer of an example is not a text");
    *answer = text_of(target);
    return 0;
}

static bool has_text(struct json_object *choices, const char *text)
{
    bool found = false;
    for (size_t i = 0; i < json_object_array_length(choices); i++)
        found = found || strcmp(dt_json_text(json_object_array_get_idx(choices, i)), text) == 0;
    return found;
}

/* Scalars of task files are texts: digits as the answer of an example there are an index. */
static int index_of_sample(struct json_object **target, struct json_object *choices,
                           struct dt_error *err)
{
    const char *text = dt_json_text(*target);
    size_t count = json_object_array_length(choices), digits = strspn(text, "0123456789");
    if (!json_object_is_type(*target, json_type_string) || digits == 0 || text[digits] ||
        digits > 9)
        return 0;
    size_t index = (size_t)atol(text);
    bool is_text = has_text(choices, text);
    if (is_text && index >= count)
        return 0;
    if (is_text && strcmp(dt_json_text(json_object_array_get_idx(choices, index)), text) != 0)
        return dt_fail(err, DT_EINVALID,
                       "the answer of an example, %s, is the index of a choice and the text of "
                       "another: write it as a template",
                       text);
    json_object_put(*target);
    *target = dt_json_new_int((int64_t)index);
    return 0;
}

/* The text before an example's answer. */
static int example_question(const struct maker *m, struct json_object *text,
                            struct json_object *choices, char **question, struct dt_error *err)
{
    int index;
    if (m->inputs) {
        DT_TRY(index_of(text, choices, &index, err));
        text = json_object_array_get_idx(choices, (size_t)index);
    }
    *question = text_of(text);
    return 0;
}

static int add_example(const struct maker *m, struct json_object *document, struct dt_buffer *b,
                       struct dt_error *err)
{
    const struct dt_task *t = m->task;
    const struct dt_task_shots *s = &t->shots;
    struct json_object *features = m->examples.features, *text = NULL, *target = NULL,
                       *choices = NULL;
    char *question = NULL, *answer = NULL;
    int numbers = numbers_of(t), rc = 0;
    rc = dt_task_evaluate(other_or(&s->text, &t->text), document, features, numbers, &text, err);
    if (rc == 0 && has_choices(t))
        rc = evaluate_choices(other_or(&s->choice, &t->choice), document, features, &choices, err);
    if (rc == 0)
        rc = dt_task_evaluate(other_or(&s->target, &t->target), document, features,
                              numbers | DT_TASK_VALUE_LIST, &target, err);
    if (rc == 0 && m->in_file && choices && !m->inputs)
        rc = index_of_sample(&target, choices, err);
    if (rc == 0)
        rc = example_question(m, text, choices, &question, err);
    if (rc == 0)
        rc = example_answer(target, m->inputs ? NULL : choices, &answer, err);
    if (rc == 0 && *answer)
        dt_buffer_printf(b, "%s%s%s%s", question, s->target_delimiter, answer, s->delimiter);
    else if (rc == 0)
        dt_buffer_add_string(b, question);
    free(question);
    free(answer);
    json_object_put(text);
    json_object_put(target);
    json_object_put(choices);
    return rc;
}

static bool is_document(const struct maker *m, const struct pool *pool, size_t i,
                        struct json_object *document)
{
    return document && json_object_equal(m->examples.documents[pool->documents[i]], document);
}

/* Chooses n examples of a pool of which those that equal the document are left out. */
static int choose(const struct maker *m, struct pool *pool, struct json_object *document, size_t n,
                  size_t *chosen, struct dt_error *err)
{
    size_t drawn = n + (document && !m->task->shots.first ? 1 : 0), kept = 0;
    size_t *numbers = dt_alloc(pool->count + 1, sizeof *numbers), *others = NULL, left = 0;
    int rc = drawn <= pool->count ? 0 : DT_EINVALID;
    if (m->task->shots.first)
        for (drawn = 0; drawn < pool->count; drawn++)
            numbers[drawn] = drawn;
    else if (rc == 0)
        dt_python_random_sample(&pool->random, pool->count, drawn, numbers);
    for (size_t i = 0; rc == 0 && i < drawn && kept < n; i++)
        if (!is_document(m, pool, numbers[i], document))
            chosen[kept++] = pool->documents[numbers[i]];
    if (rc == 0 && kept < n) { /* copies of the document were drawn: again, without them */
        others = dt_alloc(pool->count, sizeof *others);
        for (size_t i = 0; i < pool->count; i++)
            if (!is_document(m, pool, i, document))
                others[left++] = pool->documents[i];
        rc = n <= left && !m->task->shots.first ? 0 : DT_EINVALID;
        if (rc == 0)
            dt_python_random_sample(&pool->random, left, n, numbers);
        for (size_t i = 0; rc == 0 && i < n; i++)
            chosen[i] = others[numbers[i]];
    }
    if (rc < 0)
        dt_fail(err, DT_EINVALID,
                "%zu few-shot examples, besides the document itself, are more "
                "than there are: there are %zu documents",
                n, pool->count);
    free(others);
    free(numbers);
    return rc;
}

static int add_examples(const struct maker *m, struct pool *pool, struct json_object *document,
                        struct dt_buffer *b, struct dt_error *err)
{
    size_t n = (size_t)m->shots, *chosen = dt_alloc(n + 1, sizeof *chosen);
    int rc = choose(m, pool, m->leaves_out ? document : NULL, n, chosen, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = add_example(m, m->examples.documents[chosen[i]], b, err);
    free(chosen);
    return rc;
}

/* --- items ------------------------------------------------------------------------------------*/

static int add_description(const struct maker *m, struct json_object *document, struct dt_buffer *b,
                           struct dt_error *err)
{
    struct json_object *text;
    if (m->task->description.source == NULL)
        return 0;
    DT_TRY(
        dt_task_evaluate(&m->task->description, document, m->items->split.features, 0, &text, err));
    dt_buffer_add_string(b, dt_json_text(text));
    json_object_put(text);
    return 0;
}

static char *copy_of(const struct dt_buffer *b, const char *end)
{
    return dt_asprintf("%.*s%s", (int)b->size, b->size ? b->data : "", end);
}

/* The right answers, as indices. */
static int set_gold(struct dt_task_item *item, struct json_object *target,
                    struct json_object *choices, struct dt_error *err)
{
    bool list = json_object_is_type(target, json_type_array);
    item->gold_count = list ? (int)json_object_array_length(target) : 1;
    item->gold = dt_alloc((size_t)item->gold_count + 1, sizeof *item->gold);
    for (int i = 0; i < item->gold_count; i++)
        DT_TRY(index_of(list ? json_object_array_get_idx(target, (size_t)i) : target, choices,
                        &item->gold[i], err));
    return item->gold_count > 0 ? 0
                                : dt_fail(err, DT_EFORMAT, "the list of right answers is empty");
}

static void set_choices(const struct maker *m, struct dt_task_item *item, const struct dt_buffer *b,
                        struct json_object *text, struct json_object *target,
                        struct json_object *choices)
{
    const char *delimiter = m->task->target_delimiter;
    item->count = (int)json_object_array_length(choices);
    size_t n = (size_t)item->count;
    item->answers = dt_alloc(n, sizeof *item->answers);
    item->choices = dt_alloc(n, sizeof *item->choices);
    item->has_contexts = m->inputs;
    item->contexts = dt_alloc(n, sizeof *item->contexts);
    for (size_t i = 0; i < n; i++) {
        const char *choice = dt_json_text(json_object_array_get_idx(choices, i));
        item->choices[i] = dt_strdup(choice);
        char *after = m->inputs ? text_of(target) : dt_strdup(choice);
        item->answers[i] = dt_asprintf("%s%s", delimiter, after);
        free(after);
        if (m->inputs)
            item->contexts[i] = copy_of(b, choice);
    }
    if (!m->inputs)
        item->contexts[0] = copy_of(b, dt_json_text(text));
}

static void set_one(struct dt_task_item *item, char *context, char *answer)
{
    item->contexts = dt_alloc(1, sizeof *item->contexts);
    item->contexts[0] = context;
    item->answers = dt_alloc(1, sizeof *item->answers);
    item->answers[0] = answer;
    item->count = answer ? 1 : 0;
    item->gold = dt_alloc(1, sizeof *item->gold);
    item->gold_count = answer ? 1 : 0;
}

/* The right texts of a document whose answer is generated. */
static int set_right(const struct maker *m, struct dt_task_item *item, struct json_object *target,
                     struct json_object *choices, struct dt_error *err)
{
    int index;
    if (choices) {
        DT_TRY(index_of(target, choices, &index, err));
        target = json_object_array_get_idx(choices, (size_t)index);
    }
    bool list = m->targets && json_object_is_type(target, json_type_array);
    item->right_count = list ? (int)json_object_array_length(target) : 1;
    item->right = dt_alloc((size_t)item->right_count + 1, sizeof *item->right);
    for (int i = 0; i < item->right_count; i++)
        item->right[i] = text_of(list ? json_object_array_get_idx(target, (size_t)i) : target);
    return 0;
}

/* Words as len(re.split(r"\s+", text)) counts them, and bytes. */
static void measure(struct dt_task_item *item, const char *text)
{
    bool before = false;
    item->words = 1;
    item->bytes = (double)strlen(text);
    for (size_t at = 0, size = strlen(text); at < size;) {
        uint32_t point;
        size_t taken = dt_utf8_next(text + at, size - at, &point);
        bool here = taken > 0 && dt_translation_words_is_space(point);
        item->words += here && !before;
        before = here;
        at += taken > 0 ? taken : 1;
    }
}

static int set_size(const struct maker *m, struct dt_task_item *item, struct json_object *document,
                    struct dt_error *err)
{
    struct json_object *text;
    measure(item, item->answers[0]);
    if (m->task->size.source == NULL)
        return 0;
    DT_TRY(dt_task_evaluate(&m->task->size, document, m->items->split.features, 0, &text, err));
    measure(item, dt_json_text(text));
    json_object_put(text);
    return 0;
}

/* The value of each part of a document. */
struct parts {
    struct json_object *text, *target, *choices;
};

static int evaluate_parts(const struct dt_task *t, struct json_object *document,
                          struct json_object *features, struct parts *p, struct dt_error *err)
{
    int numbers = numbers_of(t);
    if (t->text.source)
        DT_TRY(dt_task_evaluate(&t->text, document, features, numbers, &p->text, err));
    DT_TRY(dt_task_evaluate(&t->target, document, features, numbers | DT_TASK_VALUE_LIST,
                            &p->target, err));
    return has_choices(t) ? evaluate_choices(&t->choice, document, features, &p->choices, err) : 0;
}

static int set_item(const struct maker *m, struct dt_task_item *item, struct json_object *document,
                    const struct dt_buffer *before, const struct parts *p, struct dt_error *err)
{
    enum dt_task_output output = m->task->output;
    if (output == DT_TASK_OUTPUT_CHOICE) {
        set_choices(m, item, before, p->text, p->target, p->choices);
        return set_gold(item, m->inputs ? p->text : p->target, p->choices, err);
    }
    char *context = copy_of(before, p->text ? dt_json_text(p->text) : "");
    if (output == DT_TASK_OUTPUT_GENERATE) {
        set_one(item, context, NULL);
        return set_right(m, item, p->target, p->choices, err);
    }
    set_one(item, context, text_of(p->target));
    if (!json_object_is_type(p->target, json_type_string))
        return dt_fail(err, DT_EFORMAT, "doc_to_target is not a text");
    return output == DT_TASK_OUTPUT_ROLLING ? set_size(m, item, document, err) : 0;
}

static int make_item(const struct maker *m, struct dt_task_item *item, struct dt_error *err)
{
    struct json_object *document = m->items->split.documents[item->number];
    struct dt_buffer before = DT_BUFFER_EMPTY;
    struct parts p = {NULL, NULL, NULL};
    int rc = add_description(m, document, &before, err);
    if (rc == 0 && m->shots > 0)
        rc = add_examples(m, &m->pools[item->group], document, &before, err);
    rc = rc < 0 ? rc : evaluate_parts(m->task, document, m->items->split.features, &p, err);
    rc = rc < 0 ? rc : set_item(m, item, document, &before, &p, err);
    if (item->count > m->items->labels)
        m->items->labels = item->count;
    dt_buffer_release(&before);
    json_object_put(p.text);
    json_object_put(p.target);
    json_object_put(p.choices);
    return rc < 0 ? dt_fail_context(err, "%s: document %zu of %s", m->task->path, item->number + 1,
                                    m->items->split.path)
                  : 0;
}

/* --- groups and splits ------------------------------------------------------------------------*/

static const char *group_name(const struct dt_task *t, struct json_object *document)
{
    struct json_object *value;
    if (t->group_by == NULL || !json_object_object_get_ex(document, t->group_by, &value))
        return "";
    return value ? dt_json_text(value) : "null";
}

static size_t find_group(struct dt_task_items *items, const char *name)
{
    size_t i = items->group_count;
    while (i-- > 0)
        if (strcmp(items->groups[i], name) == 0)
            return i;
    items->groups = dt_realloc(items->groups, items->group_count + 1, sizeof *items->groups);
    items->groups[items->group_count] = dt_strdup(name);
    return items->group_count++;
}

static void fill_pools(struct maker *m, uint64_t seed)
{
    m->pools = dt_alloc(m->items->group_count, sizeof *m->pools);
    for (size_t i = 0; i < m->items->group_count; i++)
        dt_python_random_seed(&m->pools[i].random, seed);
    for (size_t i = 0; i < m->examples.count; i++) {
        size_t groups = m->items->group_count;
        size_t group = find_group(m->items, group_name(m->task, m->examples.documents[i]));
        m->items->group_count = groups; /* a group without items has no pool */
        if (group == groups) {
            free(m->items->groups[group]);
            continue;
        }
        struct pool *p = &m->pools[group];
        DT_GROW(p->documents, p->count, p->capacity);
        p->documents[p->count++] = i;
    }
}

/* The examples in the task file itself. */
static void take_samples(struct maker *m)
{
    struct json_object *samples = m->task->shots.samples;
    struct dt_task_split *s = &m->examples;
    for (size_t i = 0; i < json_object_array_length(samples); i++) {
        DT_GROW(s->documents, s->count, s->capacity);
        s->documents[s->count++] = json_object_get(json_object_array_get_idx(samples, i));
    }
    s->features = json_object_get(m->items->split.features);
    m->in_file = true;
}

/* lm-evaluation-harness's rule: the named split, samples, else training, validation or test. */
static int read_examples(struct maker *m, const struct dt_task_ask *how, struct dt_error *err)
{
    const struct dt_task *t = m->task;
    const char *split = t->shots.split;
    const char *test = t->test_split;
    m->leaves_out = split && test ? strcmp(split, test) == 0 : split == test;
    if (m->shots == 0)
        return 0;
    if (split == NULL && t->shots.samples) {
        take_samples(m);
        return 0;
    }
    split = split ? split : t->training_split ? t->training_split : t->validation_split;
    split = split ? split : test;
    return dt_task_split_read(&m->examples, t, split, how->sources, err);
}

/* The first document says of which kind all are. */
static int look_at_first(struct maker *m, struct dt_error *err)
{
    struct dt_task_split *s = &m->items->split;
    struct parts p = {NULL, NULL, NULL};
    int rc = evaluate_parts(m->task, s->documents[0], s->features, &p, err);
    m->inputs = p.choices && is_whole(p.text);
    m->targets = json_object_is_type(p.target, json_type_array);
    json_object_put(p.text);
    json_object_put(p.target);
    json_object_put(p.choices);
    if (rc == 0 && m->inputs && m->task->output != DT_TASK_OUTPUT_CHOICE)
        return dt_fail(err, DT_EFORMAT, "%s: doc_to_text is a number", m->task->path);
    return rc < 0 ? dt_fail_context(err, "%s: document 1 of %s", m->task->path, s->path) : 0;
}

static int make_all(struct maker *m, const struct dt_task_ask *how, struct dt_error *err)
{
    struct dt_task_items *all = m->items;
    const char *split = m->task->test_split ? m->task->test_split : m->task->validation_split;
    DT_TRY(dt_task_split_read(&all->split, m->task, split, how->sources, err));
    DT_TRY(look_at_first(m, err));
    size_t count = all->split.count;
    count = how->limit > 0 && (size_t)how->limit < count ? (size_t)how->limit : count;
    all->items = dt_alloc(count, sizeof *all->items);
    for (size_t i = 0; i < count; i++) {
        all->items[i].number = i;
        all->items[i].group = find_group(all, group_name(m->task, all->split.documents[i]));
    }
    DT_TRY(read_examples(m, how, err));
    fill_pools(m, how->seed);
    for (size_t i = 0; i < count; i++) {
        all->count = i + 1;
        DT_TRY(make_item(m, &all->items[i], err));
    }
    return 0;
}

int dt_task_items_make(struct dt_task_items *items, const struct dt_task *task,
                       const struct dt_task_ask *how, struct dt_error *err)
{
    bool fixed = task->no_shots || task->output == DT_TASK_OUTPUT_ROLLING;
    struct maker m = {.items = items,
                      .task = task,
                      .shots = how->shots >= 0 && !fixed ? how->shots : task->num_fewshot};
    *items = (struct dt_task_items){.task = task};
    int rc = make_all(&m, how, err);
    for (size_t i = 0; m.pools && i < items->group_count; i++)
        free(m.pools[i].documents);
    free(m.pools);
    dt_task_split_release(&m.examples);
    return rc;
}

static void release_texts(char **texts, int count)
{
    for (int i = 0; texts && i < count; i++)
        free(texts[i]);
    free(texts);
}

void dt_task_items_release(struct dt_task_items *all)
{
    for (size_t i = 0; i < all->count; i++) {
        struct dt_task_item *item = &all->items[i];
        release_texts(item->contexts, item->has_contexts ? item->count : 1);
        release_texts(item->answers, item->count);
        release_texts(item->choices, item->count);
        release_texts(item->right, item->right_count);
        free(item->gold);
    }
    free(all->items);
    release_texts(all->groups, (int)all->group_count);
    dt_task_split_release(&all->split);
    *all = (struct dt_task_items){0};
}
