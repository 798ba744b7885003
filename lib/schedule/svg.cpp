#include "schedule/svg.hpp"

#include <algorithm>
#include <limits>

#include "base/markup.hpp"
#include "schedule/csv_cell.hpp"

namespace vpp {

namespace {

// In pixels.
constexpr double kRowHeight = 24, kRowGap = 4, kLeft = 70, kTop = 30, kBottom = 30, kRight = 10;
constexpr double kShortestBox = 22, kNarrowestText = 12, kWidest = 20000;

struct Colour {
    int hue, saturation, lightness;
};

Colour colour_of(ActionKind kind) {
    switch (kind) {
        case ActionKind::F:
            return {212, 70, 62};
        case ActionKind::B:
            return {130, 42, 52};
        case ActionKind::I:
            return {174, 50, 52};
        default:
            return {38, 85, 58};
    }
}

class SvgDrawing {
  public:
    SvgDrawing(const Schedule& lowered, const ScheduleCosts& costs, double width)
        : lowered_(lowered), costs_(costs), simulation_(simulate(lowered, costs)), scale_(pixels_per_tick(width)) {
        std::vector<int> seen(lowered.actions.size(), 0);
        for (int rank : lowered.rank_of_stage) local_stage_.push_back(seen[static_cast<size_t>(rank)]++);
    }

    std::string draw() {
        const double rows = static_cast<double>(lowered_.actions.size());
        const double width = kLeft + kRight + x(simulation_.makespan) - kLeft;
        const double height = kTop + rows * (kRowHeight + kRowGap) + kBottom;
        text_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + coordinate(width) + "\" height=\"" +
                coordinate(height) + "\" font-family=\"sans-serif\" font-size=\"11\">\n" + svg_style() +
                "<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n";
        add_text(8, 18, "start", escaped(title()));
        for (size_t rank = 0; rank < lowered_.actions.size(); ++rank) draw_row(rank);
        add_text(8, height - 10, "start",
                 "F blue, B green, I teal, W amber; darker: the later stages of a rank. Makespan " +
                     coordinate(costs_.units(simulation_.makespan)) + ", span " +
                     coordinate(costs_.units(simulation_.span)));
        return text_ + "</svg>\n";
    }

  private:
    std::string title() const {
        return lowered_.name + ": " + std::to_string(lowered_.num_ranks) + " ranks, " +
               std::to_string(lowered_.num_stages()) + " stages, " + std::to_string(lowered_.num_microbatches) +
               " microbatches";
    }

    /// The shortest action gets a box with room for a number, unless that makes the drawing too wide.
    double pixels_per_tick(double width) const {
        const auto makespan = static_cast<double>(std::max<Ticks>(1, simulation_.makespan));
        if (width > 0) return std::max(1.0, width - kLeft - kRight) / makespan;
        Ticks shortest = std::numeric_limits<Ticks>::max();
        for (size_t rank = 0; rank < lowered_.actions.size(); ++rank) {
            for (size_t i = 0; i < lowered_.actions[rank].size(); ++i) {
                const ActionTime& time = simulation_.times[rank][i];
                const bool drawn = is_computing(lowered_.actions[rank][i].kind) && time.end > time.start;
                if (drawn) shortest = std::min(shortest, time.end - time.start);
            }
        }
        if (simulation_.makespan <= 0) return 1;
        return std::min(kShortestBox / static_cast<double>(shortest),
                        kWidest / static_cast<double>(simulation_.makespan));
    }

    double x(Ticks ticks) const { return kLeft + scale_ * static_cast<double>(ticks); }

    void draw_row(size_t rank) {
        const double top = kTop + static_cast<double>(rank) * (kRowHeight + kRowGap);
        add_text(kLeft - 8, top + kRowHeight / 2 + 4, "end", "rank " + std::to_string(rank));
        text_ += "<rect x=\"" + coordinate(kLeft) + "\" y=\"" + coordinate(top) + "\" width=\"" +
                 coordinate(x(simulation_.makespan) - kLeft) + "\" height=\"" + coordinate(kRowHeight) +
                 "\" class=\"idle\"/>\n";
        const std::vector<Action>& list = lowered_.actions[rank];
        for (size_t i = 0; i < list.size(); ++i) {
            if (!is_computing(list[i].kind)) continue;
            const bool is_second = i > 0 && list[i - 1].paired, is_half = list[i].paired || is_second;
            const double height = is_half ? kRowHeight / 2 : kRowHeight;
            draw_box(list[i], simulation_.times[rank][i], is_second ? top + height : top, height);
        }
    }

    void draw_box(const Action& action, const ActionTime& time, double top, double height) {
        const double left = x(time.start), width = x(time.end) - left;
        if (width <= 0) return;
        const Colour colour = colour_of(action.kind);
        const int darker = std::min(8 * local_stage_[static_cast<size_t>(action.stage)], 24);
        text_ += "<rect x=\"" + coordinate(left) + "\" y=\"" + coordinate(top) + "\" width=\"" + coordinate(width) +
                 "\" height=\"" + coordinate(height) + "\" fill=\"hsl(" + std::to_string(colour.hue) + ',' +
                 std::to_string(colour.saturation) + "%," + std::to_string(colour.lightness - darker) +
                 "%)\" class=\"box\"><title>" + csv_cell_text(action, false) + " " +
                 coordinate(costs_.units(time.start)) + " - " + coordinate(costs_.units(time.end)) +
                 "</title></rect>\n";
        if (width < kNarrowestText) return;
        add_text(left + width / 2, top + height / 2 + 4, "middle", std::to_string(action.microbatch), "label");
    }

    void add_text(double left, double baseline, const char* anchor, const std::string& text,
                  const char* style = "ink") {
        text_ += std::string("<text class=\"") + style + "\" x=\"" + coordinate(left) + "\" y=\"" +
                 coordinate(baseline) + "\" text-anchor=\"" + anchor + "\" pointer-events=\"none\">" + text +
                 "</text>\n";
    }

    const Schedule& lowered_;
    const ScheduleCosts& costs_;
    Simulation simulation_;
    double scale_;
    std::vector<int> local_stage_;  ///< by stage: its place among the stages of its rank
    std::string text_;
};

}  // namespace

std::string draw_svg(const Schedule& lowered, const ScheduleCosts& costs, double width) {
    return SvgDrawing(lowered, costs, width).draw();
}

std::string svg_style() {
    return "<style>.ground{fill:#ffffff}.idle{fill:#f2f2f2}.ink{fill:#1f2328}.label{fill:#111111}"
           ".line{stroke:#57606a;fill:none}.box{stroke:#ffffff;stroke-width:0.5}"
           "@media (prefers-color-scheme: dark){.ground{fill:#0d1117}.idle{fill:#21262d}.ink{fill:#e6edf3}"
           ".line{stroke:#8b949e}.box{stroke:#0d1117}}</style>\n";
}

}  // namespace vpp
