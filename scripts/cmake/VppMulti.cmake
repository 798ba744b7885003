# vpp_multi_test(NAME RANKS TARGET ARGS...)
# adds the test multi.NAME: TARGET under a real mpirun with RANKS ranks, more than cores if need be. Label: multi.
set(VPP_MPI_ENVIRONMENT OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1)
function(vpp_multi_test name ranks target)
  add_test(NAME multi.${name}
    COMMAND ${MPIEXEC_EXECUTABLE} --oversubscribe -q -np ${ranks} $<TARGET_FILE:${target}> ${ARGN})
  set_tests_properties(multi.${name} PROPERTIES LABELS multi TIMEOUT 300 PROCESSORS ${ranks}
    ENVIRONMENT "${VPP_MPI_ENVIRONMENT}")
endfunction()
