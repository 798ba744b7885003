#include <map>
#include <set>
#include <tuple>

#include "schedule/csv.hpp"

namespace vpp {

namespace {

/// One row of a file while it grows.
class Row {
  public:
    void add(const std::string& cell) {
        if (!is_first_) text_ += ',';
        text_ += cell;
        is_first_ = false;
    }
    void add_idle(int count) {
        for (; count > 0; --count) add("");
    }
    std::string line() const { return text_ + '\n'; }

  private:
    std::string text_;
    bool is_first_ = true;
};

/// For every kind of transfer and stage the ranks on the other side.
using Peers = std::map<std::pair<ActionKind, int>, std::set<int>>;

Peers peers_of(const Schedule& schedule) {
    Peers peers;
    for (const std::vector<Action>& list : schedule.actions) {
        for (const Action& action : list) {
            if (is_transfer(action.kind)) peers[{action.kind, action.stage}].insert(action.peer);
        }
    }
    return peers;
}

}  // namespace

std::string to_csv(const ScheduleFile& file) {
    std::string text;
    for (size_t rank = 0; rank < file.schedule.actions.size(); ++rank) {
        const std::vector<Action>& list = file.schedule.actions[rank];
        Row row;
        for (size_t i = 0; i < list.size(); ++i) {
            row.add_idle(file.idle_before[rank][i]);
            if (list[i].paired) {
                row.add(csv_pair_text(list[i], list[i + 1]));
                ++i;
            } else {
                row.add(csv_cell_text(list[i], list[i].peer >= 0));
            }
        }
        row.add_idle(file.idle_before[rank].back());
        text += row.line();
    }
    return text;
}

std::string to_csv(const Schedule& schedule) {
    const Peers peers = peers_of(schedule);
    std::string text;
    for (const std::vector<Action>& list : schedule.actions) {
        Row row;
        std::set<std::tuple<ActionKind, int, int, int>> written;  // transfers of the run at hand
        for (size_t i = 0; i < list.size(); ++i) {
            const Action& action = list[i];
            if (is_transfer(action.kind)) {
                if (!written.insert({action.kind, action.stage, action.microbatch, action.peer}).second) continue;
                row.add(csv_cell_text(action, peers.at({action.kind, action.stage}).size() > 1));
                continue;
            }
            written.clear();
            if (action.paired && i + 1 < list.size()) {
                row.add(csv_pair_text(action, list[i + 1]));
                ++i;
            } else {
                row.add(csv_cell_text(action, false));
            }
        }
        text += row.line();
    }
    return text;
}

}  // namespace vpp
