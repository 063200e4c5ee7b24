/* SPDX-License-Identifier: MIT */
#ifndef DT_TEST_CUDA_STOPS_H
#define DT_TEST_CUDA_STOPS_H

#include <csignal>
#include <cstdio>
#include <sys/wait.h>
#include <unistd.h>

#include "toolkit/cuda_runtime.h"

/* Runs launch in a separate process and says whether the emulator stopped it. */
template <class Launch> inline bool stops(cudaStream_t stream, Launch launch)
{
    pid_t child = fork();
    if (child == 0) {
        int status = 0;
        if (freopen("/dev/null", "w", stderr) == nullptr)
            _exit(1);
        launch();
        cudaStreamSynchronize(stream);
        _exit(status);
    }
    int status;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

#endif
