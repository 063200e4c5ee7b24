/* SPDX-License-Identifier: MIT */
/* What the tests have for NCCL waits where NCCL may: two processes, a GPU each. */
#include <csignal>
#include <functional>
#include <sys/wait.h>

extern "C" {
#include "test.h"
}

#include "nccl/nccl.cpp"
#include "toolkit/cuda_runtime.h"

namespace
{
constexpr int ranks = 2, looks = 50;

/* One of two ranks, each in a separate process. */
struct rank {
    int number, say, hear; /* pipes from and to the other */
    cudaStream_t ops, streams[2];
    ncclComm_t comms[2];
    char *memory; /* of the GPU: 8 bytes to send, 8 to receive */
    bool sound = true;

    void expect(bool holds)
    {
        sound = sound && holds;
    }
    int other() const
    {
        return 1 - number;
    }
    /* The other may go on; may this one? */
    void tell() const
    {
        if (write(say, "", 1) != 1)
            abort();
    }
    void listen() const
    {
        char c;
        if (read(hear, &c, 1) != 1)
            abort();
    }
};

void look()
{
    const timespec pause = {0, 1000000};
    nanosleep(&pause, nullptr);
}

bool is_put(ncclComm_t c)
{
    ncclResult_t result;
    ncclCommGetAsyncError(c, &result);
    return result == ncclSuccess;
}

/* A group of a send, a receive or both. */
void group_of(rank &r, int which, bool sends, bool receives)
{
    ncclComm_t c = r.comms[which];
    ncclGroupStart();
    if (sends)
        ncclSend(r.memory, 8, ncclUint8, r.other(), c, r.streams[which]);
    if (receives)
        ncclRecv(r.memory + 8, 8, ncclUint8, r.other(), c, r.streams[which]);
    ncclGroupEnd();
}

/* The same, put into its stream; what tells when it is over. */
cudaEvent_t put(rank &r, int which, bool sends, bool receives)
{
    cudaEvent_t event;
    group_of(r, which, sends, receives);
    while (!is_put(r.comms[which]))
        look();
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    cudaEventRecord(event, r.streams[which]);
    return event;
}

bool is_ever_over(cudaEvent_t event)
{
    for (int i = 0; i < looks; i++, look())
        if (cudaEventQuery(event) == cudaSuccess)
            return true;
    return false;
}

void meet(rank &r, const ncclUniqueId *names)
{
    ncclConfig_t config = {};
    config.size = sizeof config;
    config.magic = DT_NCCL_CONFIG_MAGIC;
    cudaStreamCreateWithFlags(&r.ops, cudaStreamNonBlocking);
    for (int i = 0; i < 2; i++) {
        cudaStreamCreateWithFlags(&r.streams[i], cudaStreamNonBlocking);
        ncclCommInitRankConfig(&r.comms[i], ranks, names[i], r.number, &config);
        while (!is_put(r.comms[i]))
            look();
    }
    cudaMalloc(reinterpret_cast<void **>(&r.memory), 16);
}

/* Both do the same; their expectations hold, and neither waits longer than a minute. */
void both(const char *words, const std::function<void(rank &)> &act)
{
    ncclUniqueId names[2];
    int pipes[2][2];
    pid_t children[ranks];
    for (int i = 0; i < 2; i++) {
        ncclGetUniqueId(&names[i]);
        assert_int_equal(pipe(pipes[i]), 0);
    }
    for (int i = 0; i < ranks; i++) {
        if ((children[i] = fork()) != 0)
            continue;
        rank r = {};
        alarm(60);
        setenv("CUDA_EMULATOR", words, 1);
        setenv("CUDA_MODULE_LOADING", "EAGER", 1);
        r.number = i;
        r.say = pipes[i][1];
        r.hear = pipes[1 - i][0];
        r.sound = true;
        meet(r, names);
        act(r);
        _exit(r.sound ? 0 : 1);
    }
    for (int i = 0; i < ranks; i++) {
        int status;
        waitpid(children[i], &status, 0);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        close(pipes[i][0]);
        close(pipes[i][1]);
    }
}

/* Only "hurry": without it, work does not complete until a host waits for it. */
constexpr const char *words = "gpus=2 hurry";

void a_send_is_over_when_it_is_received(void **)
{
    both(words, [](rank &r) {
        put(r, 0, true, true); /* they have met */
        if (r.number == 1)
            r.listen();
        cudaEvent_t event = put(r, 0, r.number == 0, r.number == 1);
        if (r.number == 0) {
            r.expect(!is_ever_over(event));
            r.tell();
        }
        cudaEventSynchronize(event);
    });
}

void two_that_send_first_wait_for_ever_unless_grouped(void **)
{
    both(words, [](rank &r) {
        cudaEventSynchronize(put(r, 0, true, true));
        cudaEvent_t sent = put(r, 0, true, false), received = put(r, 0, false, true);
        r.expect(!is_ever_over(sent) && cudaEventQuery(received) != cudaSuccess);
        r.tell();
        r.listen();
        ncclCommAbort(r.comms[0]);
    });
}

void communicators_do_not_wait_for_each_other(void **)
{
    both(words, [](rank &r) {
        for (int i = 0; i < 2; i++)
            cudaEventSynchronize(put(r, i, true, true));
        /* Each has a communicator in which it sends alone. */
        cudaEvent_t sent = put(r, r.number, true, false);
        cudaEvent_t received = put(r, r.other(), false, true);
        cudaEventSynchronize(sent);
        cudaEventSynchronize(received);
    });
}

void a_first_message_waits_for_the_other_host(void **)
{
    both(words, [](rank &r) {
        if (r.number == 1)
            r.listen();
        group_of(r, 0, r.number == 0, r.number == 1);
        for (int i = 0; i < looks && r.number == 0; i++, look())
            r.expect(!is_put(r.comms[0]));
        if (r.number == 0)
            r.tell();
        while (!is_put(r.comms[0]))
            look();
        cudaStreamSynchronize(r.streams[0]);
    });
}
} // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_send_is_over_when_it_is_received),
        cmocka_unit_test(two_that_send_first_wait_for_ever_unless_grouped),
        cmocka_unit_test(communicators_do_not_wait_for_each_other),
        cmocka_unit_test(a_first_message_waits_for_the_other_host),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
