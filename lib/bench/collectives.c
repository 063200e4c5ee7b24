/* SPDX-License-Identifier: MIT */
/* Collectives of several ranks. */
#include "bench/bench.h"

#include "bench/collective-bench.h"
#include "comm/comm.h"
#include "json/json-number.h"

#define PATIENCE 60 /* timeout of the ranks' messages, seconds */

/* Array sizes in floats, from cache-sized to a large layer. */
static const size_t collective_sizes[] = {1 << 10, 1 << 18, 1 << 24};

static void print_collective(struct dt_bench *b, enum dt_collective what, size_t floats,
                             const struct dt_collective_speed *s, bool first)
{
    size_t bytes = floats * sizeof(float);
    double rate = (double)s->sent / s->seconds;
    if (b->json) {
        dt_buffer_printf(&b->object, "%s{\"operation\":\"%s\",\"bytes\":%zu,\"sent\":%llu",
                         first ? "" : ",", dt_collective_names[what], bytes,
                         (unsigned long long)s->sent);
        dt_json_add_fixed(&b->object, "seconds", s->seconds, 9);
        dt_json_add_fixed(&b->object, "sent_per_second", rate, 0);
        dt_buffer_add_char(&b->object, '}');
    } else
        b->print("%-16s  %9.1f KiB  %9.3f ms, the first rank sends %.2f GB/s\n",
                 dt_collective_names[what], (double)bytes / 1024, s->seconds * 1e3, rate * 1e-9);
}

static int time_collectives(struct dt_bench *b, struct dt_comm *world, struct dt_error *err)
{
    bool leads = dt_comm_rank(world) == 0;
    if (leads && b->json)
        dt_buffer_printf(&b->object, "{\"ranks\":%d,\"collectives\":[", dt_comm_size(world));
    else if (leads)
        b->print("ranks             %d\n", dt_comm_size(world));
    for (int what = 0; what < DT_COLLECTIVE_COUNT; what++)
        for (size_t i = 0; i < sizeof collective_sizes / sizeof *collective_sizes; i++) {
            struct dt_collective_speed s;
            DT_TRY(
                dt_collective_bench(world, (enum dt_collective)what, collective_sizes[i], &s, err));
            if (leads)
                print_collective(b, (enum dt_collective)what, collective_sizes[i], &s,
                                 what == 0 && i == 0);
        }
    if (leads && b->json)
        dt_buffer_add_string(&b->object, "]}\n");
    return 0;
}

int dt_bench_collective(struct dt_bench *b, const char *operand, struct dt_error *err)
{
    struct dt_comm *world;
    (void)operand;
    DT_TRY(dt_comm_open(&world, "auto", &(struct dt_opening){.patience = PATIENCE}, err));
    int rc = dt_comm_size(world) > 1
                 ? time_collectives(b, world, err)
                 : dt_fail(err, DT_EINVALID,
                           "collective needs several ranks: start it with mpirun "
                           "or srun");
    dt_comm_close(world);
    return rc;
}
