#include "base/confinement.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>

namespace vpp {

namespace {

/// `grace` is how far the hard limit lies above: at the hard limit of processor time the kernel sends SIGKILL, which
/// does not tell why; at the soft one SIGXCPU.
void limit_resource(__rlimit_resource resource, rlim_t most, rlim_t grace = 0) {
    rlimit old{};
    ::getrlimit(resource, &old);
    const rlimit fresh{std::min(most, old.rlim_max), std::min(most + grace, old.rlim_max)};
    ::setrlimit(resource, &fresh);
}

}  // namespace

void confine_process(const Confinement& confinement) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    for (int signal : {SIGINT, SIGTERM, SIGUSR1, SIGPIPE}) ::signal(signal, SIG_IGN);
    for (int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGXCPU}) ::signal(signal, SIG_DFL);
    limit_resource(RLIMIT_CORE, 0);
    limit_resource(RLIMIT_FSIZE, 0);
    limit_resource(RLIMIT_NOFILE, confinement.most_files);
    if (confinement.cpu_seconds) limit_resource(RLIMIT_CPU, *confinement.cpu_seconds, /*grace=*/5);
    limit_resource(RLIMIT_AS, confinement.memory_bytes);
}

}  // namespace vpp
