#pragma once
// DualPipeV: two stages per rank in v placement; the steady state is made of pairs of one forward and one backward that
// overlap, so the all-to-all of one hides behind the computing of the other.
#include "schedule/schedule.hpp"
#include "schedule/size.hpp"

namespace vpp {

/// Letters: a and b are the rank's stages on the way down and up; W takes the oldest pending of both; [X & Y] overlap.
/// On rank r:
/// 1. 2(P-1-r) Fa   2. r+1 times [Fa, Fb]   3. P-1-r times [Ib, W, Fb]
/// 4. M-2P+r+1 times [Fa & Bb, Fb & Ba]; on the last rank the very first Fa, Bb are no pair: Bb is that of the Fb just
///    done, whose value goes out between them
/// 5. P-1-r times [Bb, Fb & Ba]
/// 6. r+1 times [Bb, Ba], from iteration (r+1) div 2 on [Ib, Ia]; with even r that iteration is [Bb, Ia]
/// 7. P-1-r times [W, Ia]   8. r+1 W
/// Bubble:   (P-1)(FB + B - 3W) as makespan in times of one stage at equal costs, a pair being one action of time FB;
///           half of it, (P-1) T / 2, when the halves of a pair run one after the other and hand on at once
/// Peak:     2P+1 stage activations on every rank
/// Requires: a checked size.
/// Throws:   Error{Plan} when v is not 2 or M < 2P.
/// Source:   DualPipeV, github.com/deepseek-ai/DualPipe; DeepSeek-V3, arXiv 2412.19437.
Schedule make_dualpipe_v(const ScheduleSize& size);

}  // namespace vpp
