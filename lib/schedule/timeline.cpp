#include "schedule/timeline.hpp"

#include <algorithm>
#include <limits>

#include "base/units.hpp"

namespace vpp {

namespace {

constexpr int kNarrowestTimeline = 40;

std::string padded(std::string text, size_t width) {
    text.resize(std::max(width, text.size()), ' ');
    return text;
}

/// The label of a computing action; the stage is left out when the row tells it.
std::string label(const Action& action, bool with_stage) {
    const std::string text = to_text(action);
    return with_stage ? text : text.substr(std::to_string(action.stage).size());
}

/// The cheapest computing action that takes time: then none is narrower than a column.
Ticks shortest_action(const Schedule& lowered, const Simulation& simulation) {
    Ticks shortest = std::numeric_limits<Ticks>::max();
    for (size_t rank = 0; rank < lowered.actions.size(); ++rank) {
        for (size_t k = 0; k < lowered.actions[rank].size(); ++k) {
            const ActionTime& time = simulation.times[rank][k];
            const bool drawn = is_computing(lowered.actions[rank][k].kind) && time.end > time.start;
            if (drawn) shortest = std::min(shortest, time.end - time.start);
        }
    }
    return shortest == std::numeric_limits<Ticks>::max() ? 1 : shortest;
}

size_t rounded_cells(Ticks time, Ticks column) {
    return static_cast<size_t>((time + column / 2) / column);
}

struct Grid {
    Ticks column = 1;
    size_t cell_width = 0;   ///< columns of text, the blank between cells not counted
    size_t num_cells = 0;    ///< of the whole schedule
    size_t shown_cells = 0;  ///< of these as many as fit
    size_t rank_width = 0;
    bool with_stage = false;
};

Grid make_grid(const Schedule& lowered, const Simulation& simulation, size_t width) {
    Grid grid;
    grid.column = shortest_action(lowered, simulation);
    grid.num_cells = rounded_cells(simulation.makespan, grid.column);
    grid.rank_width = std::to_string(lowered.num_ranks - 1).size();
    grid.with_stage = lowered.num_stages() > lowered.num_ranks;
    grid.cell_width = 2;
    for (const std::vector<Action>& list : lowered.actions) {
        for (const Action& action : list) {
            if (!is_computing(action.kind)) continue;
            grid.cell_width = std::max(grid.cell_width, label(action, grid.with_stage).size());
        }
    }
    const size_t room = width - grid.rank_width - 2;  // "0 |" in front; a cell ends in a blank or in '>'
    grid.shown_cells = std::min(grid.num_cells, room / (grid.cell_width + 1));
    return grid;
}

struct Cell {
    std::string text;
    const char* colour;  ///< null: idle
};

/// ANSI: black on a background.
const char* terminal_colour_of(ActionKind kind) {
    switch (kind) {
        case ActionKind::F:
            return "\x1b[30;44m";
        case ActionKind::B:
            return "\x1b[30;42m";
        case ActionKind::I:
            return "\x1b[30;46m";
        default:
            return "\x1b[30;43m";
    }
}

std::string drawn(const Cell& cell, bool coloured) {
    return coloured && cell.colour ? cell.colour + cell.text + "\x1b[0m" : cell.text;
}

std::string draw_row(const Schedule& lowered, const Simulation& simulation, const Grid& grid, size_t rank,
                     bool coloured) {
    std::vector<Cell> cells(grid.shown_cells, {std::string(grid.cell_width, '.'), nullptr});
    const auto cell_at = [&](Ticks time) { return rounded_cells(time, grid.column); };
    for (size_t k = 0; k < lowered.actions[rank].size(); ++k) {
        const Action& action = lowered.actions[rank][k];
        ActionTime time = simulation.times[rank][k];
        if (!is_computing(action.kind)) continue;
        const Ticks middle = time.start + (time.end - time.start) / 2;
        if (action.paired) time.end = middle;
        if (k > 0 && lowered.actions[rank][k - 1].paired) time.start = middle;
        if (cell_at(time.start) > grid.shown_cells) break;
        const size_t begin = cell_at(time.start), end = std::min(cell_at(time.end), grid.shown_cells);
        for (size_t cell = begin; cell < end; ++cell) {
            cells[cell] = {cell == begin ? padded(label(action, grid.with_stage), grid.cell_width)
                                         : std::string(grid.cell_width, '-'),
                           terminal_colour_of(action.kind)};
        }
    }
    const std::string number = std::to_string(rank);
    std::string row = std::string(grid.rank_width - number.size(), ' ') + number + " |";
    for (size_t cell = 0; cell < cells.size(); ++cell) row += (cell ? " " : "") + drawn(cells[cell], coloured);
    if (grid.shown_cells < grid.num_cells) return row + '>';
    row.erase(row.find_last_not_of(' ') + 1);
    return row;
}

std::string percent(double rate) {
    return fixed_text(100 * rate, 1) + " %";
}

/// "4 3 2 1", cut off with ".." where it would not fit.
std::string peaks_text(const Schedule& lowered, size_t room) {
    std::string text;
    for (int peak : peak_in_flight(lowered)) {
        const std::string next = (text.empty() ? "" : " ") + std::to_string(peak);
        if (text.size() + next.size() + 3 > room) return text + " ..";
        text += next;
    }
    return text;
}

std::string legend(const Schedule& lowered, const ScheduleCosts& costs, const Simulation& simulation, const Grid& grid,
                   size_t width) {
    const auto time_text = [&](Ticks ticks) { return fixed_text(costs.units(ticks), 2); };
    std::string text;
    if (grid.shown_cells < grid.num_cells) {
        text +=
            "> the first " + std::to_string(grid.shown_cells) + " of " + std::to_string(grid.num_cells) + " columns\n";
    }
    text += "F forward  B backward  I, W its halves\n";
    text += "-- goes on  .. idle  one column = " + time_text(grid.column) + "\n";
    text += "makespan " + time_text(simulation.makespan) + ", bubble " + percent(simulation.bubble_rate()) + "\n";
    text += "span " + time_text(simulation.span) + ", bubble " + percent(simulation.span_bubble_rate()) + "\n";
    const std::string peaks = "activations in flight: ";
    return text + peaks + peaks_text(lowered, width - peaks.size()) + "\n";
}

}  // namespace

std::string draw_timeline(const Schedule& lowered, const ScheduleCosts& costs, int width, bool coloured) {
    const auto columns = static_cast<size_t>(std::max(width, kNarrowestTimeline));
    const Simulation simulation = simulate(lowered, costs);
    const Grid grid = make_grid(lowered, simulation, columns);
    std::string text = lowered.name + ": " + counted_text(lowered.num_ranks, "rank") + ", " +
                       counted_text(lowered.num_stages(), "stage") + ", " +
                       counted_text(lowered.num_microbatches, "microbatch", "microbatches") + '\n';
    for (size_t rank = 0; rank < lowered.actions.size(); ++rank) {
        text += draw_row(lowered, simulation, grid, rank, coloured) + '\n';
    }
    return text + legend(lowered, costs, simulation, grid, columns);
}

}  // namespace vpp
