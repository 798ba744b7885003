#include "report/inspection_svg.hpp"

#include <algorithm>
#include <map>

#include "base/markup.hpp"
#include "base/units.hpp"
#include "report/inspection_words.hpp"
#include "report/stage_colours.hpp"
#include "schedule/svg.hpp"

namespace vpp {

namespace {

// In pixels.
constexpr double kMargin = 16, kCardGap = 64, kNarrowestBox = 132, kNarrowestPage = 1000;
constexpr double kHeader = 24, kLine = 15, kCharacter = 6.3, kArc = 26;
constexpr size_t kMostNames = 8;

std::string one_decimal(double value) {
    return fixed_text(value, 1);
}

/// What goes from one stage to another, one microbatch.
struct Arrow {
    int64_t bytes = 0;
    int values = 0;
    bool tied = true;  ///< all of it
};

class Picture {
  public:
    explicit Picture(const Inspection& page) : page_(page) {
        for (const InspectedEdge& edge : page.edges) {
            Arrow& arrow = arrows_[{edge.producer, edge.consumer}];
            arrow.bytes += edge.bytes.value_or(0);
            ++arrow.values;
            arrow.tied = arrow.tied && edge.tied;
        }
        for (const auto& [ends, arrow] : arrows_) arcs_ = std::max(arcs_, ends.second - ends.first);
        place_boxes();
    }

    std::string draw() {
        const double top = 64 + (arcs_ > 1 ? kArc * arcs_ : 0);
        for (int stage = 0; stage < page_.num_stages(); ++stage) draw_stage(stage, top);
        for (const auto& [ends, arrow] : arrows_) draw_arrow(ends.first, ends.second, arrow, top);
        const double timeline_top = top + box_height() + 28;
        const double timeline_height = 60.0 + 28 * page_.pp;
        std::string timeline = draw_svg(page_.schedule, page_.costs, width_ - 2 * kMargin);
        timeline.insert(4, " x=\"" + one_decimal(kMargin) + "\" y=\"" + one_decimal(timeline_top) + "\"");
        const double height = timeline_top + timeline_height + kMargin;
        return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + one_decimal(width_) + " " +
               one_decimal(height) + "\" width=\"" + one_decimal(width_) + "\" height=\"" + one_decimal(height) +
               "\" font-family=\"sans-serif\" font-size=\"11\">\n" + svg_style() +
               "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
               "markerHeight=\"7\" orient=\"auto\"><path class=\"line\" d=\"M0 0 L8 4 L0 8\"/></marker></defs>\n"
               "<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n" +
               text(kMargin, 24, "start", page_.model_files, "ink\" font-size=\"15") +
               text(kMargin, 42, "start", subtitle()) + body_ + timeline + "</svg>\n";
    }

  private:
    struct StageBox {
        double left = 0, width = 0;
    };

    std::string subtitle() const {
        return counted_text(page_.num_ops, "op") + ", " + count_text(static_cast<double>(page_.num_parameters)) +
               " parameters (" + bytes_text(page_.parameter_bytes) + "); " + page_.mesh_text + ", " +
               counted_text(page_.num_stages(), "stage") + "; bubble " + percent_text(page_.bubble) +
               ", costs: " + page_.cost_source;
    }

    static std::string text(double left, double baseline, const char* anchor, const std::string& what,
                            const std::string& style = "ink") {
        return "<text class=\"" + style + "\" x=\"" + one_decimal(left) + "\" y=\"" + one_decimal(baseline) +
               "\" text-anchor=\"" + anchor + "\">" + escaped(what) + "</text>\n";
    }

    static std::string fitted(const std::string& what, double width) {
        const auto room = static_cast<size_t>(std::max(4.0, width / kCharacter));
        return what.size() <= room ? what : what.substr(0, room - 2) + "..";
    }

    /// As wide as the share of the time, but wide enough to be read.
    void place_boxes() {
        const auto count = static_cast<double>(page_.num_stages());
        const double least = count * kNarrowestBox + (count - 1) * kCardGap + 2 * kMargin;
        width_ = std::max(kNarrowestPage, least * 1.25);
        const double room = width_ - 2 * kMargin - (count - 1) * kCardGap - count * kNarrowestBox;
        double left = kMargin;
        for (const InspectedStage& stage : page_.stages) {
            const double width = kNarrowestBox + room * stage.time_share;
            boxes_.push_back({left, width});
            left += width + kCardGap;
        }
    }

    std::vector<std::string> names_of(int stage) const {
        std::vector<std::string> names;
        for (const InspectedBlock& block : page_.blocks) {
            if (block.stage != stage) continue;
            const InspectedModule& module = page_.modules[static_cast<size_t>(block.module)];
            std::string name = row_name(module);
            if (!module.class_name.empty()) name += "  " + module.class_name;
            if (module.count > 1) name += " x " + std::to_string(module.count);
            names.push_back(std::move(name));
        }
        if (names.size() <= kMostNames) return names;
        const size_t more = names.size() - (kMostNames - 1);
        names.resize(kMostNames - 1);
        names.push_back("and " + std::to_string(more) + " more");
        return names;
    }

    size_t most_names() const {
        size_t most = 0;
        for (int stage = 0; stage < page_.num_stages(); ++stage) most = std::max(most, names_of(stage).size());
        return most;
    }

    double box_height() const { return kHeader + kLine * static_cast<double>(5 + most_names()) + 14; }

    void draw_stage(int index, double top) {
        const InspectedStage& stage = page_.stages[static_cast<size_t>(index)];
        const double left = boxes_[static_cast<size_t>(index)].left, width = boxes_[static_cast<size_t>(index)].width;
        const std::string colour = stage_colour(index);
        body_ += "<rect x=\"" + one_decimal(left) + "\" y=\"" + one_decimal(top) + "\" width=\"" + one_decimal(width) +
                 "\" height=\"" + one_decimal(box_height()) + "\" rx=\"6\" fill=\"" + colour +
                 "\" fill-opacity=\"0.22\" stroke=\"" + colour + "\"><title>" + escaped(stage.modules) +
                 "</title></rect>\n<rect x=\"" + one_decimal(left) + "\" y=\"" + one_decimal(top) + "\" width=\"" +
                 one_decimal(width) + "\" height=\"" + one_decimal(kHeader) + "\" rx=\"6\" fill=\"" + colour + "\"/>\n";
        body_ += text(left + 8, top + 16, "start",
                      "stage " + std::to_string(index) + ", rank " + numbers_text(stage.ranks), "label");
        double line = top + kHeader + kLine;
        const auto add = [&](const std::string& what) {
            body_ += text(left + 8, line, "start", fitted(what, width - 12));
            line += kLine;
        };
        add(percent_text(stage.time_share) + " of the time");
        add(count_text(stage.flops) + " FLOPs F");
        add(count_text(static_cast<double>(stage.num_parameters)) + " parameters");
        add(bytes_text(stage.activation_bytes) + " activations");
        line += 5;
        body_ += "<path class=\"line\" stroke-opacity=\"0.4\" d=\"M" + one_decimal(left + 8) + " " +
                 one_decimal(line - kLine + 2) + " h" + one_decimal(width - 16) + "\"/>\n";
        for (const std::string& name : names_of(index)) add(name);
    }

    void draw_arrow(int from, int to, const Arrow& arrow, double top) {
        const auto [from_left, from_width] = boxes_[static_cast<size_t>(from)];
        const double to_left = boxes_[static_cast<size_t>(to)].left;
        const std::string label = bytes_text(arrow.bytes);
        const std::string title = "<title>" + counted_text(arrow.values, "value") + " a microbatch" +
                                  (arrow.tied ? ", tied" : "") + "</title>";
        const std::string dash = arrow.tied ? " stroke-dasharray=\"4 3\"" : "";
        if (to == from + 1) {
            const double start = from_left + from_width, middle = top + box_height() / 2;
            body_ += "<path class=\"line\" stroke-width=\"1.5\" marker-end=\"url(#tip)\"" + dash + " d=\"M" +
                     one_decimal(start + 2) + " " + one_decimal(middle) + " H" + one_decimal(to_left - 2) + "\">" +
                     title + "</path>\n" + text((start + to_left) / 2, middle - 6, "middle", label);
            if (arrow.values > 1) {
                body_ += text((start + to_left) / 2, middle + 14, "middle", counted_text(arrow.values, "value"));
            }
            return;
        }
        // Over the boxes between, the further the higher.
        const double start = from_left + from_width - 14, end = to_left + 14, peak = top - kArc * (to - from);
        body_ += "<path class=\"line\" stroke-width=\"1.5\" marker-end=\"url(#tip)\"" + dash + " d=\"M" +
                 one_decimal(start) + " " + one_decimal(top - 1) + " C" + one_decimal(start + 20) + " " +
                 one_decimal(peak) + " " + one_decimal(end - 20) + " " + one_decimal(peak) + " " + one_decimal(end) +
                 " " + one_decimal(top - 2) + "\">" + title + "</path>\n" +
                 text((start + end) / 2, top - 0.75 * (top - peak) - 5, "middle", label);
    }

    const Inspection& page_;
    std::map<std::pair<int, int>, Arrow> arrows_;
    std::vector<StageBox> boxes_;
    double width_ = 0;
    int arcs_ = 0;  ///< the longest way of an arrow, in stages
    std::string body_;
};

}  // namespace

std::string inspection_svg(const Inspection& inspection) {
    return Picture(inspection).draw();
}

}  // namespace vpp
