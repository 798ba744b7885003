#pragma once
// The places of transfers in lowered lists, for channels that keep the order of their messages (NCCL). Lowering puts
// every RECV immediately before its consumer, which tagged channels (MPI) allow whatever the sender's order is.
#include "schedule/costs.hpp"
#include "schedule/schedule.hpp"

namespace vpp {

/// Every RECV as late as ordered channels allow: immediately before its consumer, or before that of a later message of
/// its channel (from rank, to rank) if that comes first. Nothing waits for longer than with tagged channels
/// whose messages arrive in the order in which they are sent: whoever waits for one has all before it. So it ends
/// whenever the given lists do, provided that sends do not wait (a stream for each channel).
/// Requires: a schedule that lower has made.
Schedule order_channels(Schedule lowered);

/// One order for all messages of all ranks: a RECV stands where its rank is when the SEND is done, in a run at `costs`.
/// Every list follows that order, so it ends even if a send waits until its receive is reached (one stream for all),
/// and channels keep the order too. The price: a rank that is ahead of `costs` waits for messages that it does not need
/// yet. Requires: a schedule that lower has made and that ends; costs as in simulate.
Schedule order_globally(Schedule lowered, const ScheduleCosts& costs = {});

}  // namespace vpp
