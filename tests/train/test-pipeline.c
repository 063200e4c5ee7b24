/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "train/pipeline.h"

#define MOST_STAGES 6

/* What a stage does, all of it. */
struct action_list {
    struct dt_action *actions;
    size_t count, capacity;
};

/* All stages at once, each action as soon as what it needs is there. */
struct play {
    struct dt_pipeline pipeline;
    int64_t batches;
    struct action_list lists[MOST_STAGES];
    size_t next[MOST_STAGES];
    char *sent; /* [direction][run][batch] */
};

static void list_actions(struct play *p, int stage)
{
    struct action_list *l = &p->lists[stage];
    struct dt_action a;
    for (int64_t place = 0; dt_pipeline_next(&p->pipeline, stage, p->batches, &place, &a);) {
        DT_GROW(l->actions, l->count, l->capacity);
        l->actions[l->count++] = a;
    }
}

static char *place(struct play *p, int direction, int run, int64_t batch)
{
    int runs = p->pipeline.stages * p->pipeline.chunks;
    return &p->sent[((int64_t)(direction * runs + run) * p->batches) + batch];
}

static bool advance(struct play *p, int stage)
{
    if (p->next[stage] == p->lists[stage].count)
        return false;
    const struct dt_action *a = &p->lists[stage].actions[p->next[stage]];
    if (a->kind == DT_RECEIVE_INPUT && !*place(p, 0, a->run - 1, a->batch))
        return false;
    if (a->kind == DT_RECEIVE_GRADIENT && !*place(p, 1, a->run + 1, a->batch))
        return false;
    if (a->kind == DT_SEND_OUTPUT)
        *place(p, 0, a->run, a->batch) = 1;
    if (a->kind == DT_SEND_GRADIENT)
        *place(p, 1, a->run, a->batch) = 1;
    p->next[stage]++;
    return true;
}

/* Each micro-batch passes every run once forward and once backward, in order, the
 * backward pass behind the forward one. */
static void check_order(const struct play *p, int stage)
{
    int runs = p->pipeline.stages * p->pipeline.chunks;
    for (int run = stage; run < runs; run += p->pipeline.stages) {
        int64_t forward = 0, backward = 0;
        for (size_t i = 0; i < p->lists[stage].count; i++) {
            const struct dt_action *a = &p->lists[stage].actions[i];
            if (a->run == run && a->kind == DT_FORWARD)
                assert_int_equal(a->batch, forward++);
            if (a->run == run && a->kind == DT_BACKWARD)
                assert_int_equal(a->batch, backward++);
            assert_true(backward <= forward);
        }
        assert_int_equal(forward, p->batches);
        assert_int_equal(backward, p->batches);
    }
}

static int64_t count_under_way(const struct action_list *list, int run)
{
    int64_t now = 0, most = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct dt_action *a = &list->actions[i];
        if (a->run == run)
            now += (a->kind == DT_FORWARD) - (a->kind == DT_BACKWARD);
        most = now > most ? now : most;
    }
    return most;
}

/* What a round does, the next one does with the next micro-batches; none has the last backward. */
static void check_rounds(const struct play *p, int stage)
{
    struct dt_pipeline_round r = dt_pipeline_round(&p->pipeline, stage, p->batches);
    int64_t batches = r.places / 6 / p->pipeline.chunks; /* places forward, and as many backward */
    assert_true(r.first <= r.end && (r.end - r.first) % r.places == 0);
    for (int64_t i = r.first; i < r.end; i++) {
        struct dt_action a, b;
        int64_t at = i, behind = i + r.places;
        assert_true(dt_pipeline_next(&p->pipeline, stage, p->batches, &at, &a));
        assert_true(at > r.end || a.kind != DT_BACKWARD || a.batch < p->batches - 1);
        if (at + r.places > r.end)
            continue;
        assert_true(dt_pipeline_next(&p->pipeline, stage, p->batches, &behind, &b));
        assert_int_equal(behind, at + r.places);
        assert_true(a.kind == b.kind && a.run == b.run && a.batch + batches == b.batch);
    }
}

static void play(struct dt_pipeline pipeline, int64_t batches)
{
    struct play p = {.pipeline = pipeline, .batches = batches};
    p.sent = dt_alloc((size_t)(2 * pipeline.stages * pipeline.chunks) * (size_t)batches, 1);
    for (int s = 0; s < pipeline.stages; s++)
        list_actions(&p, s);
    for (bool moved = true; moved;) {
        moved = false;
        for (int s = 0; s < pipeline.stages; s++)
            while (advance(&p, s))
                moved = true;
    }
    for (int s = 0; s < pipeline.stages; s++) {
        assert_int_equal(p.next[s], p.lists[s].count); /* nobody waits for ever */
        check_order(&p, s);
        check_rounds(&p, s);
        int64_t under_way = count_under_way(&p.lists[s], s), left = pipeline.stages - s;
        for (int run = s; run < pipeline.stages * pipeline.chunks; run += pipeline.stages)
            assert_int_equal(dt_pipeline_under_way(&pipeline, s, batches, run),
                             count_under_way(&p.lists[s], run));
        if (pipeline.schedule == DT_PIPELINE_1F1B)
            assert_int_equal(under_way, batches < left ? batches : left);
        if (pipeline.schedule == DT_PIPELINE_AFAB)
            assert_int_equal(under_way, batches);
        if (pipeline.schedule == DT_PIPELINE_MODEL_PARALLEL)
            assert_int_equal(under_way, 1);
        free(p.lists[s].actions);
    }
    free(p.sent);
}

static void every_schedule_comes_to_its_end(void **state)
{
    (void)state;
    for (int stages = 1; stages <= MOST_STAGES; stages++)
        for (int64_t batches = 1; batches <= 13; batches++) {
            play((struct dt_pipeline){DT_PIPELINE_1F1B, stages, 1}, batches);
            play((struct dt_pipeline){DT_PIPELINE_AFAB, stages, 1}, batches);
            play((struct dt_pipeline){DT_PIPELINE_MODEL_PARALLEL, stages, 1}, batches);
            for (int chunks = 2; stages > 1 && chunks <= 3; chunks++)
                play((struct dt_pipeline){DT_PIPELINE_INTERLEAVED, stages, chunks},
                     batches * stages);
        }
}

/* Time of a step where a pass forward through a run takes 1 / chunks and one backward twice
 * that, and messages nothing. */
static double step_time(struct dt_pipeline pipeline, int64_t batches)
{
    struct play p = {.pipeline = pipeline, .batches = batches};
    int runs = pipeline.stages * pipeline.chunks;
    double ready[MOST_STAGES] = {0}, last = 0;
    double *sent = dt_alloc((size_t)(2 * runs) * (size_t)batches, sizeof *sent);
    p.sent = dt_alloc((size_t)(2 * runs) * (size_t)batches, 1);
    for (int s = 0; s < pipeline.stages; s++)
        list_actions(&p, s);
    for (bool moved = true; moved;) {
        moved = false;
        for (int s = 0; s < pipeline.stages; s++)
            for (;;) {
                size_t i = p.next[s];
                if (!advance(&p, s))
                    break;
                const struct dt_action *a = &p.lists[s].actions[i];
                double came = 0;
                moved = true;
                if (a->kind == DT_RECEIVE_INPUT)
                    came = sent[place(&p, 0, a->run - 1, a->batch) - p.sent];
                if (a->kind == DT_RECEIVE_GRADIENT)
                    came = sent[place(&p, 1, a->run + 1, a->batch) - p.sent];
                ready[s] = came > ready[s] ? came : ready[s];
                if (a->kind == DT_FORWARD)
                    ready[s] += 1.0 / pipeline.chunks;
                if (a->kind == DT_BACKWARD)
                    ready[s] += 2.0 / pipeline.chunks;
                if (a->kind == DT_SEND_OUTPUT)
                    sent[place(&p, 0, a->run, a->batch) - p.sent] = ready[s];
                if (a->kind == DT_SEND_GRADIENT)
                    sent[place(&p, 1, a->run, a->batch) - p.sent] = ready[s];
                last = ready[s] > last ? ready[s] : last;
            }
    }
    for (int s = 0; s < pipeline.stages; s++)
        free(p.lists[s].actions);
    free(sent);
    free(p.sent);
    return last;
}

/* The bubble is (p - 1) / m of the time that computing takes, divided by the chunks. */
static void bubbles_are_those_of_the_formula(void **state)
{
    (void)state;
    for (int stages = 2; stages <= MOST_STAGES; stages++)
        for (int64_t batches = stages; batches <= 4 * stages; batches += stages) {
            double ideal = 3.0 * (double)batches, bubble = 3.0 * (stages - 1);
            struct dt_pipeline one = {DT_PIPELINE_1F1B, stages, 1};
            struct dt_pipeline all = {DT_PIPELINE_AFAB, stages, 1};
            struct dt_pipeline two = {DT_PIPELINE_INTERLEAVED, stages, 2};
            struct dt_pipeline none = {DT_PIPELINE_MODEL_PARALLEL, stages, 1};
            assert_true(fabs(step_time(one, batches) - ideal - bubble) < 1e-9);
            assert_true(fabs(step_time(all, batches) - ideal - bubble) < 1e-9);
            assert_true(fabs(step_time(two, batches) - ideal - bubble / 2) < 1e-9);
            assert_true(fabs(step_time(none, batches) - ideal * stages) < 1e-9);
        }
}

static void impossible_schedules_are_refused(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_pipeline p = {DT_PIPELINE_INTERLEAVED, 3, 2};
    assert_int_equal(dt_pipeline_check(&p, 6, &err), 0);
    assert_int_equal(dt_pipeline_check(&p, 7, &err), DT_EINVALID);
    assert_non_null(strstr(err.text, "groups of 3"));
    p.schedule = DT_PIPELINE_1F1B;
    assert_int_equal(dt_pipeline_check(&p, 6, &err), DT_EINVALID);
    assert_non_null(strstr(err.text, "virtual_stages above 1 needs distributed.schedule"));
    p = (struct dt_pipeline){DT_PIPELINE_INTERLEAVED, 1, 2};
    assert_int_equal(dt_pipeline_check(&p, 6, &err), DT_EINVALID);
    assert_non_null(strstr(err.text, "virtual_stages above 1 needs distributed.pp above 1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_schedule_comes_to_its_end),
        cmocka_unit_test(bubbles_are_those_of_the_formula),
        cmocka_unit_test(impossible_schedules_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
