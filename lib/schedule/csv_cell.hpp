#pragma once
// One cell of a schedule file, the CSV of torch.distributed.pipelining. The whole cell must match:
//   cell     = [single | '(' single ';' single ')' 'OVERLAP_F_B']           an empty cell is an idle time step
//   single   = stage ('F' | 'B' | 'I' | 'W') microbatch
//            | stage ('SEND_F' | 'SEND_B') microbatch ['>' rank]            without a rank: all edges of the stage
//            | stage ('RECV_F' | 'RECV_B') microbatch ['<' rank]
//            | stage ('REDUCE_GRAD' | 'UNSHARD' | 'RESHARD')
// Numbers are decimal, from 0, without leading zeros. Blanks around a cell or around the halves of a pair are ignored.
// In the old dialect B is the input gradient (now I) and BW the full backward (now B).
#include <array>
#include <functional>
#include <string>
#include <string_view>

#include "schedule/action.hpp"

namespace vpp {

enum class CsvDialect { Now, Old };

/// The actions of one cell: none when it is idle or a marker, two for an OVERLAP_F_B, else one. Transfers have edge -1,
/// and peer -1 where the cell names no rank.
struct CsvCell {
    std::array<Action, 2> actions;
    int num_actions = 0;
    bool is_marker = false;  ///< UNSHARD or RESHARD, which vpp does not have
    std::string problem;     ///< why it is no cell; empty: it is one
};

/// Numbers of stages, microbatches and ranks stay below kMostStageMicrobatches (schedule/size.hpp).
CsvCell parse_csv_cell(std::string_view text, CsvDialect dialect);

/// The text of an action as a cell: "0F1", "0SEND_F2", "3REDUCE_GRAD"; with_peer: "0SEND_F2>3", "1RECV_F2<0".
std::string csv_cell_text(const Action& action, bool with_peer);
/// "(0F7;7B3)OVERLAP_F_B"
std::string csv_pair_text(const Action& first, const Action& second);

/// Calls `visit` for every cell with its line and its number in the line, both from 1, and its text without blanks
/// around it, and for a blank line with cell 0. Lines end in LF or CRLF; the last line may be without an end. A byte
/// order mark before the first line is skipped.
void for_each_csv_cell(std::string_view text, const std::function<void(int line, int cell, std::string_view)>& visit);

}  // namespace vpp
