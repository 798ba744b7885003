// A CUDA-aware MPI for soft cards: with VPP_SOFT_MPI_TAKES_CARDS MPI says that it moves their memory, and does; as a
// card would, it reads what is there when the send is given to it.
#include <dlfcn.h>
#include <mpi.h>

#include <cstdlib>

#include "soft_card/memory.hpp"

namespace {

using vpp::soft_card::near;

bool takes_cards() {
    return std::getenv("VPP_SOFT_MPI_TAKES_CARDS") != nullptr;
}

template <typename Function>
Function* next(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int MPIX_Query_cuda_support() {
    return takes_cards() ? 1 : 0;
}

int MPI_Isend(const void* memory, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
              MPI_Request* request) {
    static auto* const send = next<decltype(MPI_Isend)>("MPI_Isend");
    return send(takes_cards() ? near(memory) : memory, count, type, rank, tag, comm, request);
}

int MPI_Irecv(void* memory, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm, MPI_Request* request) {
    static auto* const receive = next<decltype(MPI_Irecv)>("MPI_Irecv");
    return receive(takes_cards() ? near(memory) : memory, count, type, rank, tag, comm, request);
}
}
