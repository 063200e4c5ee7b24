/* SPDX-License-Identifier: MIT */
/* Where the environment of a launcher lets ranks meet. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "comm/meeting-place.h"

static const char *const variables[] = {
    "RANK",         "WORLD_SIZE",   "LOCAL_WORLD_SIZE",     "MASTER_ADDR",         "MASTER_PORT",
    "DT_KEY",       "TMPDIR",       "JOB_COMPLETION_INDEX", "SLURM_PROCID",        "SLURM_NTASKS",
    "SLURM_JOB_ID", "SLURM_NNODES", "SLURM_STEP_ID",        "SLURM_STEP_NODELIST", "PMI_RANK",
    "PMI_SIZE",     "PMIX_RANK",    "SLURM_STEP_NUM_NODES", "SLURM_STEP_NUM_TASKS"};

static void unset_all(void)
{
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    unsetenv("TORCHELASTIC_USE_AGENT_STORE");
}

/* words: NAME=VALUE, separated by blanks. */
static void set_environment(const char *words)
{
    char *copy = dt_strdup(words), *rest = copy;
    unset_all();
    for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL;) {
        char *value = strchr(word, '=');
        *value = 0;
        setenv(word, value + 1, 1);
    }
    free(copy);
}

/* The place of the environment, or "" if several ranks are not announced. */
static void expect(const char *words, const char *name)
{
    struct dt_launch l;
    struct dt_meeting_place place;
    struct dt_error err;
    set_environment(words);
    bool announced = dt_meeting_place_is_announced();
    assert_int_equal(announced, *name != 0);
    if (announced) {
        assert_int_equal(dt_launch_find(&l, &err), 0);
        assert_int_equal(dt_meeting_place_find(&place, NULL, &l, &err), 0);
        assert_memory_equal(place.name, name, strlen(name));
        assert_int_equal(place.host != NULL, strncmp(name, "tcp://", 6) == 0);
        dt_meeting_place_release(&place);
    }
}

#define KEY   "DT_KEY=0123456789abcdef "
#define TORCH "RANK=1 WORLD_SIZE=4 MASTER_ADDR=a.b MASTER_PORT=29500 "
#define SLURM "SLURM_PROCID=1 SLURM_NTASKS=4 SLURM_STEP_ID=0 SLURM_JOB_ID=12345 "

static void each_launcher_has_its_place(void **state)
{
    (void)state;
    expect(TORCH KEY, "tcp://a.b:29500");
    expect(TORCH KEY "LOCAL_WORLD_SIZE=2", "tcp://a.b:29500");
    expect(TORCH "LOCAL_WORLD_SIZE=4 TMPDIR=/x", "/x/dt-");
    expect(TORCH "LOCAL_WORLD_SIZE=4", "/tmp/dt-");
    expect(TORCH KEY "TORCHELASTIC_USE_AGENT_STORE=True", "tcp://a.b:29501");
    expect(TORCH KEY "TORCHELASTIC_USE_AGENT_STORE=False", "tcp://a.b:29500");
    expect("JOB_COMPLETION_INDEX=1 WORLD_SIZE=4 MASTER_ADDR=j-0.j MASTER_PORT=7 " KEY,
           "tcp://j-0.j:7");
    expect(SLURM KEY "SLURM_STEP_NODELIST=n[03-05,9]-ib,m SLURM_STEP_NUM_NODES=4",
           "tcp://n03-ib:22345");
    expect(SLURM KEY "SLURM_STEP_NODELIST=n[3,9]", "tcp://n3:22345");
    expect(SLURM KEY "SLURM_STEP_NODELIST=rack[2-3]n[07,9]-ib,m", "tcp://rack2n07-ib:22345");
    expect(SLURM KEY "SLURM_STEP_NODELIST=n1,n2", "tcp://n1:22345");
    expect(SLURM KEY "SLURM_STEP_NODELIST=n[1", "tcp://n1:22345");
    expect(SLURM KEY "SLURM_STEP_NODELIST=n1,n2 MASTER_ADDR=a.b", "tcp://n1:22345");
    expect(SLURM "SLURM_STEP_NODELIST=n1 SLURM_STEP_NUM_NODES=1", "/tmp/dt-");
}

static void nothing_is_announced_to_one_process_or_by_mpi(void **state)
{
    (void)state;
    expect("RANK=1 WORLD_SIZE=4", "");
    expect("RANK=0 WORLD_SIZE=1 MASTER_ADDR=a.b MASTER_PORT=29500", "");
    expect("WORLD_SIZE=4 MASTER_ADDR=a.b MASTER_PORT=29500", "");
    expect("JOB_COMPLETION_INDEX=1 MASTER_ADDR=a.b MASTER_PORT=29500", "");
    expect(TORCH "PMI_RANK=0 PMI_SIZE=4", "");
    expect(SLURM "SLURM_STEP_NODELIST=n[1-2] SLURM_STEP_NUM_NODES=2", "");     /* no key */
    expect("SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_JOB_ID=1 SLURM_NNODES=1", ""); /* a batch script */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_launcher_has_its_place),
        cmocka_unit_test(nothing_is_announced_to_one_process_or_by_mpi),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
