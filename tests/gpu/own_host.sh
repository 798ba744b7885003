#!/bin/sh
# Runs VPP_PROGRAM under mpirun on a machine with VPP_CARDS cards. Where there are more ranks, as many as it has cards
# are a host of their own to NCCL, which lets ranks of different hosts share a card and moves their messages by sockets.
set -eu
if [ "$OMPI_COMM_WORLD_LOCAL_SIZE" -gt "$VPP_CARDS" ]; then
    NCCL_HOSTID=$(hostname)-$((OMPI_COMM_WORLD_LOCAL_RANK / VPP_CARDS))
    export NCCL_HOSTID NCCL_NET=Socket NCCL_SOCKET_IFNAME=lo
fi
exec "$VPP_PROGRAM" "$@"
